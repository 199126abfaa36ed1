/* SPDX-License-Identifier: Apache-2.0 */
/* Strong mode as a model for Spin: three members, all of their crashes and all that a network can do to their
 * messages, within small bounds. It is written from witness/ file by file (each block names its file and the section
 * of Ongaro's thesis), and what it asserts is what witness/README.md promises. run.sh checks it, and then plants each
 * bug of conflict/base/plant.h that lies in it, which must be found.
 *
 * The network never forgets. There are no messages in flight here, only what each leader ever said in its term
 * (said[t]) and what its followers ever answered (reply[t]). All of it only grows, so a message that is late, doubled,
 * overtaken or lost is one that is heard later, again, or never: `hear` may take any entry that was ever sent in term
 * t, at any time. Two kinds of answers are not monotone and carry their numbers: ReadIndexResponse, and the round.
 * What is learned early may be used late: each use is a step of its own.
 *
 * Durable before visible: every member has its state in memory and an image of it on disk. `sync` is the only way from
 * the first to the second, `crash` the only way back, and what another member is told is bounded by the image, except
 * where a bug is planted. An entry is known by its index and term, so a log is a string of terms; an entry's payload
 * is something that a member has (holds) or has dropped (base).
 */

#ifndef TERMS
#define TERMS 3 /* the group starts in term 1 */
#endif
#ifndef LENGTH
#define LENGTH 3 /* of a log; at most 4 */
#endif
#ifndef CRASHES
#define CRASHES 1 /* of all members together */
#endif
#ifndef READS
#define READS 0 /* strong reads begun, one after the other */
#endif

#define NOBODY 3

mtype = { FOLLOWER, CANDIDATE, LEADER, IDLE, ASKED, ROUND }

/* A log is a number: three bits for the term of each entry, the first entry in bits 3 to 5. */
#define term_at(log, i) (((log) >> (3 * (i))) & 7)
#define upto(log, i) ((log) & ((8 << (3 * (i))) - 1))
#define extended(log, i, t) (upto(log, (i) - 1) | ((t) << (3 * (i))))

typedef state {
    byte term; /* hard state, with vote */
    short log;
    byte length;
    mtype role;
    byte commit;
    byte durable; /* of the log */
    byte matched; /* as follower, in this term: our log is the leader's up to here */
    byte mark;    /* likewise: how far the leader has said its log to be durable there */
    byte base;    /* the witness has dropped payloads up to here */
    byte disk_term;
    short disk_log;
    byte disk_length;
    byte vote;
    byte disk_vote;
};
state at[3];

/* All Appends of a term's leader: any run of entries of this log, any mark and commit up to these. */
typedef speech {
    byte by;
    short log;
    byte length;
    byte base; /* what it could not send, as it had only terms of it */
    byte mark;
    byte commit;
};
speech said[TERMS + 1];

/* All AppendResponses to it. */
typedef answers {
    byte durable[3];
    byte round; /* greatest that anybody answered */
};
answers reply[TERMS + 1];

/* The strong read under way; one is enough, as a read changes nothing for others, and it may begin at any time. */
mtype read_state = IDLE;
byte read_member = NOBODY, read_term;
byte read_number; /* nonce, or the leader's round */
byte read_index;  /* at the leader */
byte read_must;   /* what was acknowledged, or read, before it began */
byte reads_begun;

/* A ReadIndexResponse, of whatever age. */
byte response_to = NOBODY, response_term, response_number, response_index;

/* Ghosts: what the properties speak of. */
short committed; /* the log that is committed, as the first to commit each entry saw it */
byte committed_length;
byte acked; /* greatest index that a data member has applied, so may have answered for */
byte crashes;

byte i, k; /* scratch, zero between steps */

#ifdef WITNESS
#define is_witness(m) ((m) == 2)
#else
#define is_witness(m) false
#endif
#define last_term(m) term_at(at[m].log, at[m].length)
#define min(a, b) ((a) < (b) -> (a) : (b))
#define max(a, b) ((a) > (b) -> (a) : (b))

/* consensus.c, flush_messages: no message leaves before the term and vote that it speaks from are durable. */
#ifdef PLANT_VOTE_NOT_PERSISTED
#define may_speak(m) true
#else
#define may_speak(m) (at[m].disk_term == at[m].term && at[m].disk_vote == at[m].vote)
#endif

/* consensus_internal.h, claim: what a member may claim of its log. */
#ifdef PLANT_CLAIM_UNSYNCED
#define claim(m) at[m].length
#else
#define claim(m) at[m].durable
#endif

/* append.c, durables: what the leader m counts of itself and of the others. */
#ifdef PLANT_LEADER_UNSYNCED
#define counts(m, of) ((of) == (m) -> at[m].length : reply[at[m].term].durable[of])
#else
#define counts(m, of) ((of) == (m) -> claim(m) : reply[at[m].term].durable[of])
#endif

/* What must be possible, or the checks prove little. GOAL names one, which is then reported as an error. READ: the
 * last read is served in a later term. TRIM: the witness drops a payload in a later term. CARETAKER: the witness has
 * led, and a data member follows it as leader with the witness's last entry. */
#define GOAL_READ 1
#define GOAL_TRIM 2
#define GOAL_CARETAKER 3
#ifdef GOAL
#define goal(name, condition) assert(GOAL != GOAL_##name || !(condition))
#else
#define goal(name, condition) skip
#endif

/* ---- What must always hold ---- */

/* The member's disk has the entry with its payload. */
#define holds(m, index)                                                                                  \
    (at[m].disk_length >= (index) && term_at(at[m].disk_log, index) == term_at(committed, index) &&      \
     at[m].base < (index))

/* RPO 0: whichever member is lost now, for ever, a copy of all that was acknowledged is left; so there are two. And
 * what the witness has dropped, both data members have. */
inline check_copies()
{
    for (i : 1 .. acked) {
        assert(holds(0, i) + holds(1, i) + holds(2, i) >= 2);
    }
    for (i : 1 .. at[2].base) {
        assert(holds(0, i) && holds(1, i));
    }
}

/* consensus.c, consensus_commit. State machine safety (thesis 3.6.3): nobody commits another entry there. */
inline commit_upto(m, index)
{
    if
    :: (index) > at[m].commit ->
        at[m].commit = index;
        k = min(at[m].commit, committed_length);
        assert(upto(at[m].log, k) == upto(committed, k));
        if
        :: at[m].commit > committed_length ->
            committed_length = at[m].commit;
            committed = upto(at[m].log, committed_length);
        :: else
        fi
    :: else
    fi
}

/* consensus.c, flush_apply: a data member applies, and answers for, what is committed and durable here. */
inline apply(m)
{
    if
    :: !is_witness(m) -> acked = max(acked, min(at[m].commit, claim(m)))
    :: else
    fi;
    check_copies()
}

/* What no state can refer to any more is zero, so that states which differ only in that are one. */
inline forget()
{
    for (i : 1 .. TERMS - 1) {
        if
        :: at[0].disk_term > i && at[1].disk_term > i && at[2].disk_term > i ->
            said[i].by = 0;
            said[i].log = 0;
            said[i].length = 0;
            said[i].base = 0;
            said[i].mark = 0;
            said[i].commit = 0;
        :: else
        fi
    };
    if
    :: read_state == IDLE ->
        read_member = NOBODY;
        read_term = 0;
        read_number = 0;
        read_index = 0;
        read_must = 0;
    :: else
    fi
}

/* barrier.c: the read will be served once `index` is applied. So by the proof in witness/README.md it covers all that
 * was acknowledged before the read began. (What the member has applied by itself does not help: it is more here than it
 * need be, as `hear` brings the newest marks, and an Append that is late would not.) */
inline check_read(m, index)
{
    assert((index) >= read_must);
    goal(READ, read_must > 1 && read_number == READS && at[m].term > 1);
    read_state = IDLE;
    forget()
}

inline leader_gone(m)
{
    if
    :: at[m].role == LEADER ->
        reply[at[m].term].durable[0] = 0;
        reply[at[m].term].durable[1] = 0;
        reply[at[m].term].durable[2] = 0;
        reply[at[m].term].round = 0;
    :: else
    fi;
    at[m].role = FOLLOWER
}

/* elect.c, consensus_adopt_term. The marks and the matched part speak of the log of the old term's leader, and a read
 * asked in the old term begins anew: as another one, here. */
inline adopt(m, t)
{
    leader_gone(m);
    at[m].term = t;
    at[m].vote = NOBODY;
    at[m].matched = 0;
#ifndef PLANT_MARK_KEPT
    at[m].mark = 0;
#endif
#ifndef PLANT_READ_OLD_TERM
    if
    :: read_state != IDLE && read_member == m -> read_state = IDLE
    :: else
    fi;
#endif
    forget()
}

/* ---- The follower: follow.c ---- */

/* answer: AppendResponse, with no more than is durable; and the leader's term must be durable by then. */
inline answer(m)
{
    if
    :: at[m].role == FOLLOWER && may_speak(m) && at[m].matched > 0 ->
        k = min(at[m].matched, claim(m));
        reply[at[m].term].durable[m] = max(reply[at[m].term].durable[m], k);
    :: else
    fi
}

/* advance: follower-origin commit. */
inline follower_advance(m)
{
#ifdef PLANT_MARK_UNVERIFIED
    k = min(claim(m), at[m].mark);
#else
    k = min(min(claim(m), at[m].mark), at[m].matched);
#endif
    if
#ifdef PLANT_MARK_OLD_TERM
    :: at[m].role == FOLLOWER && k > 0 -> commit_upto(m, k)
#else
    :: at[m].role == FOLLOWER && k > 0 && term_at(at[m].log, k) == at[m].term -> commit_upto(m, k)
#endif
    :: else
    fi;
    answer(m);
    apply(m)
}

/* consensus_on_append, with the entry `e` of term t's leader; e - 1 is where the two logs must agree (thesis 3.5). An
 * Append with more entries is several of these, one without is one whose entry we have. A refused one changes nothing
 * that matters here: the leader tries at another place, and all places are tried anyhow. */
#define can_hear(m, t, e)                                                                                \
    (at[m].term <= (t) && said[t].by != m && (e) <= said[t].length &&       \
     (e) > said[t].base && at[m].length >= (e)-1 &&                                                      \
     term_at(at[m].log, (e)-1) == term_at(said[t].log, (e)-1))

inline hear(m, t, e)
{
    if
    :: at[m].term < (t) -> adopt(m, t)
    :: else -> at[m].role = FOLLOWER
    fi;
    if /* take_entries: only a conflict cuts the log, and never what is committed. */
    :: at[m].length >= (e) && term_at(at[m].log, e) != term_at(said[t].log, e) ->
        assert((e) > at[m].commit);
        at[m].length = (e)-1;
        at[m].durable = min(at[m].durable, at[m].length);
    :: else
    fi;
    if
    :: at[m].length < (e) ->
        at[m].length = e;
        at[m].log = extended(at[m].log, e, term_at(said[t].log, e));
    :: else
    fi;
#ifdef PLANT_CUT_MATCHING
    if
    :: (e) < at[m].length && (e) >= at[m].commit ->
        at[m].length = e;
        at[m].log = upto(at[m].log, e);
        at[m].durable = min(at[m].durable, e);
    :: else
    fi;
#endif
    at[m].matched = max(at[m].matched, e);
    at[m].mark = max(at[m].mark, said[t].mark);
    k = min(said[t].commit, at[m].matched);
    commit_upto(m, k);
    follower_advance(m)
}

/* ---- Disks: consensus.c, flush_persist and on_persisted; start.c ---- */

#define dirty(m)                                                                                         \
    (at[m].disk_term != at[m].term || at[m].disk_vote != at[m].vote || at[m].disk_log != at[m].log)

inline sync(m)
{
    at[m].disk_term = at[m].term;
    at[m].disk_vote = at[m].vote;
    at[m].disk_log = at[m].log;
    at[m].disk_length = at[m].length;
    at[m].durable = at[m].length;
    forget();
    if
    :: at[m].role == LEADER ->
        said[at[m].term].mark = claim(m);
        apply(m)
    :: else -> follower_advance(m)
    fi
}

inline crash(m)
{
    crashes++;
    leader_gone(m);
    at[m].term = at[m].disk_term;
    at[m].vote = at[m].disk_vote;
    at[m].log = at[m].disk_log;
    at[m].length = at[m].disk_length;
    at[m].durable = at[m].length;
    at[m].commit = at[m].base;
    at[m].matched = 0;
    at[m].mark = 0;
    if
    :: read_state != IDLE && read_member == m -> read_state = IDLE
    :: else
    fi;
    forget()
}

/* append.c, consensus_extend. An entry is sent while our own disk is still at it; the mark follows. */
inline extend(m)
{
    at[m].length++;
    at[m].log = extended(at[m].log, at[m].length, at[m].term);
    said[at[m].term].log = at[m].log;
    said[at[m].term].length = at[m].length;
#ifdef PLANT_MARK_EARLY
    said[at[m].term].mark = at[m].length;
#else
    said[at[m].term].mark = at[m].durable;
#endif
}

/* ---- Elections: elect.c (thesis 3.4). Anybody may lose patience at any time, a leader that nobody hears included
 * (check-quorum), or be told to stand (hand-over, thesis 3.10); pre-vote and stickiness only make that rarer. ---- */

inline campaign(m)
{
    k = at[m].term + 1;
    adopt(m, k);
    at[m].vote = m;
    at[m].role = CANDIDATE
}

/* quorum_up_to_date: an equal or better log, the unsynced part of the voter's included. */
#ifdef PLANT_VOTE_BEHIND
#define up_to_date(c, than) true
#else
#define up_to_date(c, than)                                                                              \
    (last_term(c) > last_term(than) || (last_term(c) == last_term(than) && at[c].length >= at[than].length))
#endif

/* consensus_on_vote. The candidate has told its term, so it is durable there. */
#define can_vote(v, c)                                                                                   \
    (at[c].role == CANDIDATE && may_speak(c) && up_to_date(c, v) &&                                      \
     (at[v].term < at[c].term || (at[v].term == at[c].term && at[v].vote == NOBODY && at[v].role == FOLLOWER)))

inline grant(v, c)
{
    if
    :: at[v].term < at[c].term ->
        k = at[c].term;
        adopt(v, k)
    :: else
    fi;
    at[v].vote = c;
    at[v].matched = 0
}

/* consensus_on_vote_response, with the vote of v. That the candidate takes it while the voter is still in that term
 * loses nothing: a leader that is made early may be idle for as long as it likes. */
#define can_lead(c, v)                                                                                   \
    (at[c].role == CANDIDATE && may_speak(c) && at[c].length < LENGTH && at[v].term == at[c].term &&     \
     at[v].vote == c && may_speak(v))

/* append.c, consensus_lead. Election safety, and leader completeness (thesis 3.6): it has all that is committed. A
 * witness that wins is a caretaker: it appends its no-op, repairs whoever is behind, and somebody else stands. */
inline lead(c)
{
    assert(said[at[c].term].length == 0);
    assert(at[c].length >= committed_length && upto(at[c].log, committed_length) == committed);
    goal(CARETAKER, is_witness(said[at[c].term - 1].by) && last_term(c) == at[c].term - 1 && acked > 1);
    at[c].role = LEADER;
    at[c].mark = 0;
    said[at[c].term].by = c;
    said[at[c].term].base = at[c].base;
    said[at[c].term].commit = at[c].commit;
    extend(c)
}

/* ---- The leader: append.c, propose.c ---- */

/* consensus_leader_advance: what two members have durably, if it is of this term (thesis, figure 3.7). */
#define second_greatest(a, b, c) max(min(a, b), max(min(a, c), min(b, c)))

inline leader_advance(m)
{
    k = second_greatest(counts(m, 0), counts(m, 1), counts(m, 2));
    if
#ifdef PLANT_FIGURE_8
    :: k > at[m].commit ->
#else
    :: k > at[m].commit && term_at(at[m].log, k) == at[m].term ->
#endif
        commit_upto(m, k);
        said[at[m].term].commit = at[m].commit;
        apply(m)
    :: else
    fi
}

/* ---- The witness: witness.c. It drops what it is told, by the leader of its term, that every data member has. ---- */

#define leads(l, t) (at[l].role == LEADER && at[l].term == (t))

inline trim(l)
{
#ifdef PLANT_TRIM_COMMITTED
    k = at[l].commit;
#else
    k = min(at[l].commit, min(counts(l, 0), counts(l, 1)));
#endif
#ifdef PLANT_METADATA_ONLY
    k = at[2].length;
#else
    k = min(k, min(at[2].commit, at[2].durable));
#endif
    at[2].base = max(at[2].base, k);
    goal(TRIM, at[2].base > 1 && at[2].term > 1);
    check_copies()
}

/* ---- Strong reads: barrier.c (thesis 6.4) ---- */

/* read_index: the last index, not the commit index, as an origin may know more than its leader. */
#ifdef PLANT_READ_COMMIT
#define index_for_read(m) at[m].commit
#else
#ifdef PLANT_READ_OWN_TERM
#define index_for_read(m)                                                                                \
    (term_at(at[m].log, at[m].commit) == at[m].term -> at[m].length : at[m].commit)
#else
#define index_for_read(m) at[m].length
#endif
#endif

/* consensus_read_begin, and at once flush_follower or flush_leader. It takes the place of an earlier one, whose client
 * gave up or which is asked again: under a number of its own, for what comes in answer to the other may be too old. */
#define can_read(m)                                                                                      \
    (reads_begun < READS && !is_witness(m) && at[m].role != CANDIDATE && may_speak(m))

inline read_begin(m)
{
    reads_begun++;
    read_number = reads_begun;
    read_member = m;
    read_term = at[m].term;
    read_must = acked;
    read_index = 0;
    if
    :: at[m].role == LEADER ->
        read_index = index_for_read(m);
        read_state = ROUND;
    :: else -> read_state = ASKED
    fi
#ifdef PLANT_READ_NO_ROUND
    ;
    if
    :: at[m].role == LEADER -> check_read(m, read_index)
    :: else
    fi
#endif
}

/* consensus_on_read_index: the leader of the term that the question came from answers it. */
#if defined(PLANT_ANSWER_OLD_TERM) || defined(REQUEST_ANY_TERM)
#define can_answer_read(m) (at[m].role == LEADER && !is_witness(m) && read_state == ASKED && read_member != m)
#else
#define can_answer_read(m) (leads(m, read_term) && !is_witness(m) && read_state == ASKED && read_member != m)
#endif

inline answer_read(m)
{
    response_to = read_member;
    response_term = at[m].term;
    response_number = read_number;
    response_index = index_for_read(m)
}

/* consensus_on_read_index_response. The term in which the answer is taken is the second vote of a quorum. */
#ifdef PLANT_NONCE_REUSED
#define right_number true
#else
#define right_number (response_number == read_number)
#endif
#if defined(PLANT_ANSWER_OLD_TERM) || defined(PLANT_READ_OLD_TERM)
#define right_term(m) true
#else
#define right_term(m) (response_term == at[m].term && read_term == at[m].term)
#endif
#define can_take_index(m)                                                                                \
    (read_state == ASKED && read_member == m && response_to == m && at[m].role != LEADER &&              \
     right_number && right_term(m))

/* follow.c, answer: to an Append that was sent after the leader's read began, so it carries its round. */
#define can_answer_round(m, l)                                                                           \
    (read_state == ROUND && read_member == l && leads(l, at[m].term) && at[m].role == FOLLOWER &&        \
     may_speak(m) && reply[at[l].term].round < read_number)

inline answer_round(l)
{
    reply[at[l].term].round = read_number
}

/* consensus_reads_round. */
#ifdef PLANT_ROUND_REUSED
#define right_round(m) (reply[at[m].term].round > 0)
#else
#define right_round(m) (reply[at[m].term].round >= read_number)
#endif
#ifdef PLANT_READ_OLD_TERM
#define can_end_round(m) (read_state == ROUND && read_member == m && at[m].role == LEADER && right_round(m))
#else
#define can_end_round(m) (read_state == ROUND && read_member == m && leads(m, read_term) && right_round(m))
#endif

/* ---- A member ---- */

/* The members are alike (but for the witness), so states that differ only in who is who are one: after each step the
 * members are put in order. That takes the names out of traces, so it is done only where no error is expected. */
#ifdef SYMMETRY
c_code {
    static void exchange(int a, int b)
    {
        unsigned char *names[] = {&now.at[0].vote, &now.at[1].vote, &now.at[2].vote, &now.at[0].disk_vote,
            &now.at[1].disk_vote, &now.at[2].disk_vote, &now.read_member, &now.response_to};
        struct state state = now.at[a];
        now.at[a] = now.at[b];
        now.at[b] = state;
        for (unsigned n = 0; n < sizeof(names) / sizeof(*names); n++)
            *names[n] = *names[n] == a ? b : *names[n] == b ? a : *names[n];
        for (int t = 0; t <= TERMS; t++) {
            unsigned char durable = now.reply[t].durable[a], *by = &now.said[t].by;
            now.reply[t].durable[a] = now.reply[t].durable[b];
            now.reply[t].durable[b] = durable;
            if (now.said[t].length)
                *by = *by == a ? b : *by == b ? a : *by;
        }
    }

    static void order(int a, int b)
    {
        if (memcmp(&now.at[a], &now.at[b], sizeof(now.at[a])) < 0)
            exchange(a, b);
    }
};
#ifdef WITNESS
#define name_anew() c_code { order(0, 1); }
#else
#define name_anew() c_code { order(0, 1); order(1, 2); order(0, 1); }
#endif
#else
#define name_anew() skip
#endif

/* A schedule in which no disk is ever late, for bugs that need many terms and no unsynced entry. */
#ifdef PROMPT_DISKS
inline settle(m)
{
    if
    :: dirty(m) -> sync(m)
    :: else
    fi
}
#else
#define settle(m) skip
#endif

/* What is printed shows only where a trail is followed: see README.md. */
#define STEP(guard, action)                                                                              \
    :: d_step {                                                                                          \
        guard -> printf("member %d: ", m); printf(#action); printf("\n");                                 \
        action;                                                                                          \
        settle(m);                                                                                       \
        i = 0;                                                                                           \
        k = 0;                                                                                           \
        name_anew();                                                                                     \
    }

#define VOTE(c) STEP((c) != m && can_vote(m, c), grant(m, c))
#define LEAD(v) STEP((v) != m && can_lead(m, v), lead(m))
#define HEAR(t, e) STEP(can_hear(m, t, e), hear(m, t, e))
#define DROP(l) STEP(is_witness(m) && leads(l, at[m].term), trim(l))
#define ANSWER_ROUND(l) STEP((l) != m && can_answer_round(m, l), answer_round(l))
#if LENGTH > 3
#define HEAR_TERM(t) HEAR(t, 1) HEAR(t, 2) HEAR(t, 3) HEAR(t, 4)
#else
#define HEAR_TERM(t) HEAR(t, 1) HEAR(t, 2) HEAR(t, 3)
#endif

proctype member(byte m)
{
end:
    do
    STEP(dirty(m), sync(m))
    STEP(crashes < CRASHES, crash(m))
    STEP(at[m].term < TERMS, campaign(m))
    VOTE(0) VOTE(1) VOTE(2)
    LEAD(0) LEAD(1) LEAD(2)
    HEAR_TERM(1) HEAR_TERM(2)
#if TERMS > 2
    HEAR_TERM(3)
#endif
#if TERMS > 3
    HEAR_TERM(4)
#endif
    /* A proposal, of whatever origin: propose.c. A caretaker takes none. */
    STEP(at[m].role == LEADER && !is_witness(m) && at[m].length < LENGTH, extend(m))
    STEP(at[m].role == LEADER, leader_advance(m))
#ifdef WITNESS
    DROP(0) DROP(1) DROP(2)
#endif
#if READS > 0
    STEP(can_read(m), read_begin(m))
    STEP(can_answer_read(m), answer_read(m))
    STEP(can_take_index(m), check_read(m, response_index))
    ANSWER_ROUND(0) ANSWER_ROUND(1) ANSWER_ROUND(2)
    STEP(can_end_round(m), check_read(m, read_index))
#endif
    od
}

/* Term 1, led by member 0, whose no-op everybody has. */
init
{
    d_step {
        for (i : 0 .. 2) {
            at[i].term = 1;
            at[i].vote = 0;
            at[i].log = extended(0, 1, 1);
            at[i].length = 1;
            at[i].role = FOLLOWER;
            at[i].commit = 1;
            at[i].durable = 1;
            at[i].matched = 1;
            at[i].mark = 1;
            at[i].disk_term = 1;
            at[i].disk_log = at[i].log;
            at[i].disk_length = 1;
        };
        i = 0;
        reply[1].durable[1] = 1;
        reply[1].durable[2] = 1;
        at[0].role = LEADER;
        at[0].matched = 0;
        at[0].mark = 0;
        said[1].log = at[0].log;
        said[1].length = 1;
        said[1].mark = 1;
        said[1].commit = 1;
        committed = at[0].log;
        committed_length = 1;
        acked = 1;
    }
    atomic {
        run member(0);
        run member(1);
        run member(2);
    }
}
