#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks the model of strong mode: the protocol as it is must show no error within the bounds, what must be possible
# must happen, and each planted bug must be found. One line each, with the states that were looked at and the
# processor's seconds for generating, compiling and searching.
#
#   tests/model/run.sh [--quick] [NAME...]    --quick: smaller bounds, under a minute of one core; NAME: only these
#
# The last line is `model: N passed, N failed, N skipped`; without spin or gcc the status is 77.
set -uo pipefail
export LC_ALL=C
model=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/strong.pml
quick='' only=()
for argument; do
    case $argument in
    --quick) quick=yes ;;
    -*) sed -n '/^#   tests/s/^# *//p' "$0" && exit 2 ;;
    *) only+=("$argument") ;;
    esac
done
for tool in spin gcc; do
    command -v $tool >/dev/null || { echo "model: skipped: $tool is not installed" && exit 77; }
done
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
passed=0 failed=0
mkdir "$work/pan" && cd "$work/pan" || exit 2
TIMEFORMAT='%U'

# Prints Spin's own words where a run ends otherwise than by a complete search or an error found.
search() { # search COMPILER-OPTIONS DEFINE...
    local compiler=$1
    shift
    rm -f ./* && spin "${@/#/-D}" -a "$model" >spin.out 2>&1 || { cat spin.out && return 1; }
    # Hash compaction would take a 32-bit hash, of which some states of a million share one; the 64-bit one is there.
    if [[ $compiler == *-DHC4* ]]; then
        grep -q 'if (ssize <= 32)' pan.c || { echo "this spin hashes otherwise" && return 1; }
        sed -i 's/if (ssize <= 32)/if (0)/' pan.c
    fi
    gcc -w $compiler -DSAFETY -DNOREDUCE -DMEMLIM=2000 -o pan pan.c >gcc.out 2>&1 || { cat gcc.out && return 1; }
    timeout 840 ./pan -m10000 ${bits:-} >pan.out 2>&1 || echo "stopped: $?"
}

# expect none|error NAME COMPILER-OPTIONS "DEFINE..." WHAT
expect() {
    local want=$1 name=$2 compiler=$3 defines=$4 what=$5 errors states depth verdict=ok
    ((${#only[@]} == 0)) || [[ " ${only[*]} " == *" $name "* ]] || return 0
    rm -f pan.out
    { time search "$compiler" $defines >"$work/said" 2>&1; } 2>"$work/seconds"
    errors=$(sed -nE 's/.*errors: ([0-9]+)$/\1/p' pan.out 2>/dev/null)
    depth=$(sed -nE 's/.*depth reached ([0-9]+),.*/\1/p' pan.out 2>/dev/null)
    states=$(awk '/states, stored/ { printf "%.0f", $1; exit }' pan.out 2>/dev/null)
    case $want in
    none) [[ $errors == 0 ]] && ! grep -qE 'not completed|too small|reached -DMEMLIM' pan.out || verdict=FAILED ;;
    error) [[ $errors == 1 ]] && grep -q 'assertion violated' pan.out || verdict=FAILED ;;
    esac
    [[ -s $work/said ]] && verdict=FAILED
    printf '%-6s %-22s %10s states, depth %3s, %6s s  %s\n' \
        $verdict "$name" "${states:-?}" "${depth:-?}" "$(tail -n 1 "$work/seconds")" "$what ($defines)"
    if [[ $verdict == ok ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        cat "$work/said"
        grep -sE '^pan:|error:|not completed' pan.out
    fi
}

correct() { expect none "$1" "${4:--O1 -DHC4}" "$2 SYMMETRY" "$3"; }
possible() { expect error "$1" '-O0 -DHC4' "$2 GOAL=GOAL_$3" 'must be possible'; }
plant() { # plant NAME "DEFINE...": the bug of that name in conflict/base/plant.h, or one of our own
    local name=${1//-/_}
    expect error "$1" '-O0 -DHC4' "$2 PLANT_${name^^}" 'planted'
}

small='TERMS=2 LENGTH=2'
if [[ $quick ]]; then
    correct data "$small" 'no error'
    correct witness "$small WITNESS" 'no error'
    correct read "$small READS=1" 'no error'
    correct prompt-disks 'TERMS=3 LENGTH=3 CRASHES=0 PROMPT_DISKS' 'no error'
else
    correct data "$small CRASHES=2" 'no error'
    correct data-length 'TERMS=2 LENGTH=3' 'no error'
    correct data-terms 'TERMS=3 LENGTH=2' 'no error'
    correct data-both 'TERMS=3 LENGTH=3 CRASHES=0' 'no error'
    correct witness-length 'TERMS=2 LENGTH=3 WITNESS' 'no error'
    correct witness-terms 'TERMS=3 LENGTH=2 WITNESS' 'no error'
    correct read "$small READS=1" 'no error'
    correct read-again "$small READS=2" 'no error'
    correct read-length 'TERMS=2 LENGTH=3 READS=1 CRASHES=0' 'no error'
    correct prompt-disks 'TERMS=4 LENGTH=3 PROMPT_DISKS' 'no error'
    correct prompt-witness 'TERMS=3 LENGTH=3 WITNESS PROMPT_DISKS' 'no error'
    correct prompt-read 'TERMS=3 LENGTH=3 READS=1 CRASHES=0 PROMPT_DISKS' 'no error'
    # Two rules that others imply (README.md): leaving one out is no error.
    correct mark-unverified 'TERMS=3 LENGTH=2 PLANT_MARK_UNVERIFIED' 'harmless, so no error'
    correct request-any-term "$small READS=1 REQUEST_ANY_TERM" 'harmless, so no error'
fi

possible read-in-later-term "$small READS=2" READ
possible witness-trims 'TERMS=2 LENGTH=3 WITNESS' TRIM
possible caretaker-hands-over 'TERMS=3 LENGTH=3 CRASHES=0 WITNESS PROMPT_DISKS' CARETAKER

plant mark-early "$small"
plant mark-kept "$small"
plant mark-old-term 'TERMS=4 LENGTH=3 CRASHES=0 PROMPT_DISKS'
plant figure-8 'TERMS=4 LENGTH=3 CRASHES=0 PROMPT_DISKS'
plant claim-unsynced "$small"
plant leader-unsynced "$small"
plant vote-not-persisted "$small"
plant vote-behind "$small" # not in plant.h: a vote for a log that is behind
plant cut-matching "$small"
plant trim-committed "$small WITNESS"
plant metadata-only "$small WITNESS" # not in plant.h: a witness that keeps terms and no payloads
plant read-no-round "$small READS=1"
plant read-own-term "$small READS=1"
plant read-commit "$small READS=1"
plant read-old-term 'TERMS=3 LENGTH=3 READS=1 CRASHES=0 PROMPT_DISKS'
plant answer-old-term "$small READS=1" # not in plant.h: no term is looked at, neither when answering nor when taking
plant nonce-reused "$small READS=2"
plant round-reused "$small READS=2"

# Too many states to keep them: two bits of half a gigabyte for each, so a few may be missed.
if [[ ! $quick ]]; then
    bits=-w32 correct beyond 'TERMS=3 LENGTH=3' 'no error, not all states' '-O1 -DBITSTATE'
fi

((passed + failed)) || { echo "nothing is called ${only[*]}" >&2 && exit 2; }
echo "model: $passed passed, $failed failed, 0 skipped"
exit $((failed > 0))
