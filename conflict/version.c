/* SPDX-License-Identifier: Apache-2.0 */
/* Order and encoding of versions, and the arithmetic of version vectors: short sorted arrays, since
 * a table has at most VV_MAX Regions and usually three. */

#include "conflict/version.h"

#include "conflict/base/check.h"
#include "conflict/base/plant.h"
#include "conflict/region_id.h"

bool version_seq_follows(uint64_t last, uint64_t next)
{
    if (next == 0)
        return false;
    if (next - 1 == last)
        return true;
    uint64_t epoch = version_epoch(next);
    return epoch > version_epoch(last) && next == version_epoch_base(epoch) + 1;
}

static int compare_u64(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

int version_compare(struct version a, struct version b)
{
    int order = compare_u64(a.hlc, b.hlc);
    if (order == 0)
        order = compare_u64(a.origin, b.origin);
    return order ? order : compare_u64(a.seq, b.seq);
}

void version_encode(struct version v, struct buf *to)
{
    buf_append_be64(to, v.hlc);
    buf_append_be16(to, v.origin);
    buf_append_be64(to, v.seq);
}

bool version_decode(struct bytes *from, struct version *ret)
{
    struct bytes rest = *from;
    struct version v;
    if (!bytes_take_be64(&rest, &v.hlc) || !bytes_take_be16(&rest, &v.origin) ||
        !bytes_take_be64(&rest, &v.seq))
        return false;
    bool none = v.hlc == 0 && v.origin == 0 && v.seq == 0;
    if (!none && (!region_id_valid(v.origin) || v.seq == 0))
        return false;
    *from = rest;
    *ret = v;
    return true;
}

/* The first entry that is not before this origin's epoch. */
static uint32_t position(const struct vv *vv, uint16_t origin, uint64_t epoch)
{
    uint32_t i = 0;
    while (i < vv->count && (vv->at[i].origin < origin ||
                             (vv->at[i].origin == origin && version_epoch(vv->at[i].seq) < epoch)))
        i++;
    return i;
}

uint64_t vv_get(const struct vv *vv, uint16_t origin)
{
    uint32_t end = position(vv, origin, UINT64_MAX);
    return end > 0 && vv->at[end - 1].origin == origin ? vv->at[end - 1].seq : 0;
}

uint64_t vv_in_epoch(const struct vv *vv, uint16_t origin, uint64_t epoch)
{
    uint32_t i = position(vv, origin, epoch);
    bool found = i < vv->count && vv->at[i].origin == origin;
    return found && version_epoch(vv->at[i].seq) == epoch ? vv->at[i].seq : 0;
}

bool vv_knows(const struct vv *vv, uint16_t origin, uint64_t seq)
{
    uint64_t epoch = version_epoch(seq);
    if (planted(PLANT_EPOCH_COVERS))
        return vv_get(vv, origin) >= seq;
    if (seq == version_epoch_base(epoch))
        return true;
    uint32_t begin = position(vv, origin, 0), end = position(vv, origin, UINT64_MAX);
    uint32_t i = position(vv, origin, epoch);
    if (i < end && version_epoch(vv->at[i].seq) == epoch)
        return vv->at[i].seq >= seq;
    /* One that has as many epochs as it can have may have had this one, too. */
    bool full = end - begin == VV_EPOCHS_MAX || vv->count == VV_MAX;
    return full && (vv->count == VV_MAX ? i < end : i == begin);
}

static void take_out(struct vv *vv, uint32_t i)
{
    vv->count--;
    memmove(&vv->at[i], &vv->at[i + 1], (vv->count - i) * sizeof(vv->at[0]));
}

/* Takes out the oldest epoch for which its origin has a later one; false when there is none. */
static bool make_room(struct vv *vv)
{
    uint32_t oldest = VV_MAX;
    for (uint32_t i = 0; i + 1 < vv->count; i++)
        if (vv->at[i].origin == vv->at[i + 1].origin &&
            (oldest == VV_MAX || vv->at[i].seq < vv->at[oldest].seq))
            oldest = i;
    if (oldest == VV_MAX)
        return false;
    take_out(vv, oldest);
    return true;
}

bool vv_raise(struct vv *vv, uint16_t origin, uint64_t seq)
{
    check(region_id_valid(origin));
    uint64_t epoch = version_epoch(seq);
    uint32_t i = position(vv, origin, epoch);
    uint32_t begin = position(vv, origin, 0), end = position(vv, origin, UINT64_MAX);
    if (i < end && version_epoch(vv->at[i].seq) == epoch) {
        if (seq > vv->at[i].seq)
            vv->at[i].seq = seq;
        return true;
    }
    if (seq == 0)
        return true; /* what is absent is at 0: one form for one meaning */
    bool full = end - begin == VV_EPOCHS_MAX || (vv->count == VV_MAX && end > begin);
    if (full && i == begin)
        return true; /* older than what is kept */
    if (full)
        take_out(vv, begin);
    else if (vv->count == VV_MAX && !make_room(vv))
        return false;
    i = position(vv, origin, epoch);
    memmove(&vv->at[i + 1], &vv->at[i], (vv->count - i) * sizeof(vv->at[0]));
    vv->at[i].origin = origin;
    vv->at[i].seq = seq;
    vv->count++;
    return true;
}

void vv_drop(struct vv *vv, uint16_t origin, uint64_t epoch)
{
    if (vv_in_epoch(vv, origin, epoch))
        take_out(vv, position(vv, origin, epoch));
}

bool vv_join(struct vv *to, const struct vv *from)
{
    struct vv joined = *to;
    for (uint32_t i = 0; i < from->count; i++)
        if (!vv_raise(&joined, from->at[i].origin, from->at[i].seq))
            return false;
    *to = joined;
    return true;
}

bool vv_covers(const struct vv *a, const struct vv *b)
{
    for (uint32_t i = 0; i < b->count; i++)
        if (!vv_knows(a, b->at[i].origin, b->at[i].seq))
            return false;
    return true;
}

void vv_encode(const struct vv *vv, struct buf *to)
{
    check(vv->count <= VV_MAX);
    buf_append_u8(to, (uint8_t)vv->count);
    for (uint32_t i = 0; i < vv->count; i++) {
        buf_append_varint(to, vv->at[i].origin);
        buf_append_varint(to, vv->at[i].seq);
    }
}

/* Whether the last entry follows those before it. */
static bool in_order(const struct vv *vv)
{
    uint32_t last = vv->count - 1;
    if (last == 0 || vv->at[last].origin > vv->at[last - 1].origin)
        return true;
    bool many = last >= VV_EPOCHS_MAX && vv->at[last - VV_EPOCHS_MAX].origin == vv->at[last].origin;
    return vv->at[last].origin == vv->at[last - 1].origin && !many &&
           version_epoch(vv->at[last].seq) > version_epoch(vv->at[last - 1].seq);
}

bool vv_decode(struct bytes *from, struct vv *ret)
{
    struct bytes rest = *from;
    struct vv vv = {0};
    uint8_t count;
    if (!bytes_take_u8(&rest, &count) || count > VV_MAX)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t origin, seq;
        if (!bytes_take_varint(&rest, &origin) || !bytes_take_varint(&rest, &seq))
            return false;
        if (origin > REGION_ID_MAX || !region_id_valid((uint16_t)origin) || seq == 0)
            return false;
        vv.at[i].origin = (uint16_t)origin;
        vv.at[i].seq = seq;
        vv.count++;
        if (!in_order(&vv))
            return false;
    }
    *from = rest;
    *ret = vv;
    return true;
}
