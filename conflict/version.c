/* SPDX-License-Identifier: Apache-2.0 */
/* Order and encoding of versions, and the arithmetic of version vectors: short sorted arrays, since
 * a table has at most VV_MAX Regions and usually three. */

#include "conflict/version.h"

#include "conflict/base/check.h"
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

uint64_t vv_get(const struct vv *vv, uint16_t origin)
{
    for (uint32_t i = 0; i < vv->count; i++)
        if (vv->at[i].origin == origin)
            return vv->at[i].seq;
    return 0;
}

bool vv_raise(struct vv *vv, uint16_t origin, uint64_t seq)
{
    check(region_id_valid(origin));
    uint32_t i = 0;
    while (i < vv->count && vv->at[i].origin < origin)
        i++;
    if (i < vv->count && vv->at[i].origin == origin) {
        if (seq > vv->at[i].seq)
            vv->at[i].seq = seq;
        return true;
    }
    if (seq == 0)
        return true; /* what is absent is at 0: one form for one meaning */
    if (vv->count == VV_MAX)
        return false;
    memmove(&vv->at[i + 1], &vv->at[i], (vv->count - i) * sizeof(vv->at[0]));
    vv->at[i].origin = origin;
    vv->at[i].seq = seq;
    vv->count++;
    return true;
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
        if (vv_get(a, b->at[i].origin) < b->at[i].seq)
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

bool vv_decode(struct bytes *from, struct vv *ret)
{
    struct bytes rest = *from;
    struct vv vv = {0};
    uint8_t count;
    if (!bytes_take_u8(&rest, &count) || count > VV_MAX)
        return false;
    uint64_t before = REGION_ID_NONE;
    for (uint32_t i = 0; i < count; i++) {
        uint64_t origin, seq;
        if (!bytes_take_varint(&rest, &origin) || !bytes_take_varint(&rest, &seq))
            return false;
        if (!region_id_valid(origin) || origin <= before || seq == 0)
            return false;
        before = origin;
        vv.at[i].origin = (uint16_t)origin;
        vv.at[i].seq = seq;
    }
    vv.count = count;
    *from = rest;
    *ret = vv;
    return true;
}
