#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Style as a test: each rule below prints what breaks it and is one check. The rules read text and symbol
# tables only, so the whole run takes seconds.
#
#   tests/tidy.sh [--build DIR] [--only RULE] [TREE]    DIR holds unsanitized libraries, for the symbol rules
#   tests/tidy.sh --self-test [--build DIR]             plants a violation of each rule and sees it caught
#
# The last line is `tidy: N passed, N failed, N skipped`.
set -uo pipefail
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tree=$(dirname "$here") build='' only='' self_test=''
while (($#)); do
    case $1 in
    --build) build=$(realpath "$2") && shift ;;
    --only) only=$2 && shift ;;
    --self-test) self_test=yes ;;
    *) tree=$1 ;;
    esac
    shift
done
cd "$tree" || exit 2

files() { # files EXTENSION...: of the tree, not of what was built or installed into it
    local names=() extension
    for extension; do names+=(-o -name "*.$extension"); done
    find . \( -name build -o -name node_modules -o -name .git -o -name __pycache__ \) -prune -o \
        -type f \( "${names[@]:1}" \) -print | sed 's|^\./||' | sort
}
sources() { files c h | grep -v '^tests/'; }
pure() { sources | grep -E '^(conflict|replicator|witness|region/(core|api)|chaos/check)/'; }

# ---- the rules; each prints file:line and what to do instead

rule_arrows() { # an include may only go down (CONTRIBUTING.md, the map)
    sources | xargs awk '
        function room(path) {
            if (path ~ /^conflict\/base\//) return "base"
            if (path ~ /^region\/core\//) return "core"
            if (path ~ /^region\/api\//) return "api"
            if (path ~ /^region\/store_leveldb\./) return "leveldb"
            if (path ~ /^region\//) return "node"
            if (path ~ /^chaos\/run\/(outcome|judge|judge_sentence|measure)\./) return "outcome"
            if (match(path, /^chaos\/(check|scenario|drive|sim|live|shim|inject|report|run|simulate)\//))
                return substr(path, 7, RLENGTH - 7)
            sub(/\/.*/, "", path)
            return path
        }
        BEGIN {
            below["base"] = "base"
            below["conflict"] = "conflict base"
            below["replicator"] = "replicator conflict base"
            below["witness"] = "witness conflict base"
            below["core"] = "core replicator witness conflict base"
            below["api"] = "api " below["core"]
            below["leveldb"] = "leveldb " below["core"]
            below["net"] = "net base"
            below["node"] = "node leveldb net " below["api"]
            below["check"] = "check conflict base"
            below["scenario"] = "scenario conflict base"
            below["drive"] = "drive net check scenario conflict base"
            below["sim"] = "sim check scenario " below["core"]
            below["live"] = "live net scenario " below["api"]
            below["shim"] = "shim"
            below["outcome"] = "outcome check scenario conflict base"
            below["report"] = "report " below["outcome"]
            below["inject"] = "inject shim outcome check live net scenario " below["api"]
            below["run"] = "run drive inject report outcome check live net scenario " below["api"]
            below["simulate"] = "simulate sim report " below["run"]
            below["chaos"] = "chaos simulate sim " below["run"]
        }
        match($0, /^#include "[^"]+"/) {
            target = substr($0, 11, RLENGTH - 11)
            if (index(" " below[room(FILENAME)] " ", " " room(target) " ") == 0)
                print FILENAME ":" FNR ": " room(FILENAME) " may not include " target
        }'
}

rule_third_party() { # a library is known only where the design puts it
    local pattern rooms
    while read -r pattern rooms; do
        sources | grep -vE "^($rooms)" | xargs grep -nE "^#include <($pattern)" |
            sed "s#\$#  (belongs in ${rooms//|/, })#"
    done <<'TABLE'
uv\.h net/|region/[a-z_]+\.|chaos/live/|chaos/drive/|chaos/inject/|chaos/run/|chaos/main
nghttp2/ net/
openssl/ net/|region/api/|region/[a-z_]+\.
http_parser\.h net/
leveldb/ region/store_leveldb
protobuf-c/ replicator/replicator_wire|region/core/control_wire|witness/consensus_wire
jansson\.h region/api/|region/[a-z_]+\.|chaos/(live|scenario|drive|inject|report|run|simulate)/|chaos/main
yaml\.h chaos/scenario/
cyaml/ region/[a-z_]+\.|chaos/live/|chaos/main
TABLE
}

libraries_below() {
    case $1 in
    base) ;;
    conflict) echo base ;;
    replicator | witness | check) echo base conflict ;;
    region_core) echo base conflict replicator witness ;;
    region_api) echo base conflict replicator witness region_core ;;
    esac
}

rule_symbols() { # what a pure library imports is pure: tests/tidy/symbols.txt
    local library
    for library in base conflict replicator witness region_core region_api check; do
        [[ -f $build/lib$library.a ]] || continue
        {
            nm --defined-only --format=posix "$build/lib$library.a" \
                $(libraries_below $library | xargs -n1 printf "$build/lib%s.a\n") 2>/dev/null |
                awk 'NF > 2 { print "have", $1 }'
            awk -v library=$library '/^#/ || !NF { next }
                $1 == "all:" || $1 == library ":" { for (i = 2; i <= NF; i++) print "may", $i }' \
                "$here/tidy/symbols.txt"
            nm -u --format=posix "$build/lib$library.a" | awk 'NF > 1 { print "need", $1 }'
        } | awk -v library=$library '
            $1 == "have" { have[$2] }
            $1 == "may" { may[++count] = "^(" $2 ")$" }
            $1 == "need" && !($2 in have) && !($2 in seen) {
                seen[$2]
                for (i = 1; i <= count; i++) if ($2 ~ may[i]) next
                print "lib" library ".a: imports " $2 ", which tests/tidy/symbols.txt does not allow"
            }'
    done
}

rule_globals() { # a pure library has no writable data: what varies is an argument
    local library
    for library in base conflict replicator witness region_core region_api check; do
        [[ -f $build/lib$library.a ]] || continue
        { grep '^writable:' "$here/tidy/symbols.txt"; objdump -t "$build/lib$library.a"; } |
            awk -v library=$library '
            $1 == "writable:" { for (i = 2; i <= NF; i++) may[++count] = "^(" $i ")$" }
            / O \.(data|bss|tdata|tbss)(\.[A-Za-z_0-9.]+)?\t/ && !/\.data\.rel\.ro/ {
                for (i = 1; i <= count; i++) if ($NF ~ may[i]) next
                print "lib" library ".a: " $NF " is writable static data"
            }'
    done
}

rule_function_length() { # at most 70 lines: branch in the parent, compute in pure leaves
    files c h | xargs awk '
        FNR == 1 { start = 0 }
        /^\{/ { start = FNR }
        /^\}/ && start {
            if (FNR - start - 1 > 70) print FILENAME ":" start ": " FNR - start - 1 " lines in a function"
            start = 0
        }'
}

rule_file_length() { # at most 500 lines, or 800 with the reason ("500 lines") in its head comment
    files c h py sh mjs | xargs awk '
        FNR == 1 { if (name) report(); name = FILENAME; reason = 0 }
        FNR < 30 && /500 lines/ { reason = 1 }
        { lines = FNR }
        END { report() }
        function report() {
            if (lines > (reason ? 800 : 500)) print name ": " lines " lines; split it by what it does"
        }'
}

rule_line_length() { # at most 100 columns in C, 120 elsewhere; tables of data may say otherwise
    files c h | xargs awk 'length($0) > 100 && !/https?:/ { print FILENAME ":" FNR ": " length($0) " columns" }'
    files py sh mjs cmake | xargs awk 'length($0) > 120 { print FILENAME ":" FNR ": " length($0) " columns" }'
}

rule_banned_calls() { # each with what to call instead
    local call instead
    while read -r call instead; do
        files c h | grep -v '^conflict/base/alloc\.' |
            xargs grep -nE "(^|[^A-Za-z0-9_.>])($call)\(" | grep -vE ':[0-9]+: *(\*|/\*|//)' |
            sed "s/\$/  (use $instead)/" | grep -v '^tests/.*(use the x-allocators'
    done <<'TABLE'
strcpy|strcat|stpcpy|strncpy|strncat buf_append or bytes_copy
sprintf|vsprintf snprintf
strtok the readers of conflict.base.bytes
gets fgets
atoi|atol|atoll|atof|sscanf strtol and its like, with their errors
rand|srand|random|rand_r|drand48 struct rng
malloc|calloc|realloc|strdup|strndup|asprintf the x-allocators of conflict.base.alloc
alloca an arena
assert check
system|popen uv_spawn or posix_spawn
tmpnam|tempnam|mktemp mkstemp
TABLE
    local outside='time|clock|clock_gettime|gettimeofday|localtime|getenv|fopen|open|socket'
    pure | xargs grep -nE "(^|[^A-Za-z0-9_.>])($outside|pthread_[a-z_]+|uv_[a-z_]+)\(" |
        grep -vE ':[0-9]+: *(\*|/\*|//)' | sed 's/$/  (a core takes it as an argument)/'
}

rule_promises() { # do it, or leave it out and say so in the design page
    files c h py sh mjs cmake md proto lua | grep -v '^tests/tidy\.sh$' |
        xargs grep -nE '\b(TO''DO|FIX''ME|XX''X|HA''CK)\b'
}

rule_spdx() {
    { files c h py sh mjs proto lua cmake; ls up check .ci/run; } | grep -v '/extra\.cmake$' |
        while read -r file; do
            head -n 3 "$file" | grep -q 'SPDX-License-Identifier: Apache-2.0' ||
                echo "$file: no SPDX-License-Identifier in its first lines"
        done
}

rule_typedefs() { # struct x is spelled out; only a function's type, or protobuf's long one, has an alias
    sources | xargs grep -nE '^typedef ' | grep -vE '\(|__V[0-9]+__'
}

rule_machine() { # nothing names one machine, or where packages come from
    { files c h py sh mjs cmake md json proto lua txt yaml; ls up check .ci/run; } |
        grep -v '^tests/tidy\.sh$' |
        xargs grep -nE '/(work|root|home/[a-z]+)/|registry\.[a-z]+js|"resolved"|deb\.debian\.org|pypi\.org'
}

rule_tests_registered() { # CMake finds tests by their names: others would never run
    ls tests/unit 2>/dev/null | grep -vE '^[a-z]+_[a-z0-9_]+_test\.c$' |
        sed 's|^|tests/unit/|; s|$|: a unit test is <room>_<module>_test.c|'
    local target
    for target in tests/fuzz/fuzz_*.c; do
        target=$(basename "$target" .c)
        [[ -n $(ls -A "tests/fuzz/corpus/$target" 2>/dev/null) || $target == 'fuzz_*' ]] ||
            echo "tests/fuzz/$target.c: has no corpus in tests/fuzz/corpus/$target"
    done
    grep -lE '^ +def test_' tests/live/*.py 2>/dev/null |
        grep -vE '/(live_[a-z0-9_]+|[a-z0-9_]+_test)\.py$' | sed 's|$|: a live test is live_*.py or *_test.py|'
}

rule_opening() { # a file, or its header, opens with the idea
    sources | while read -r file; do
        head -n 20 "$file" | grep -v SPDX | grep -qE '^/\* ?[A-Za-z`]' && continue
        head -n 20 "${file%.*}.h" 2>/dev/null | grep -v SPDX | grep -qE '^/\* ?[A-Za-z`]' && continue
        echo "$file: neither it nor its header opens with a comment on the idea"
    done
}

rule_links() { # what a page points to exists
    files md | while read -r page; do
        grep -oE '\]\([^)#]+' "$page" | sed 's/^](//' | grep -vE '^(https?|mailto):' | while read -r link; do
            [[ -e $(dirname "$page")/$link ]] || echo "$page: points to $link, which is not there"
        done
    done
}

rule_scripts() { # every script parses
    local file
    for file in up check .ci/run .ci/packages.sh $(files sh); do
        bash -n "$file" 2>&1 | head -n 1
    done
    files py | xargs /usr/bin/python3 -c '
import ast, sys
for name in sys.argv[1:]:
    try:
        ast.parse(open(name, encoding="utf-8").read(), name)
    except SyntaxError as error:
        print(f"{name}:{error.lineno}: {error.msg}")'
}

rules=(arrows third_party symbols globals function_length file_length line_length banned_calls promises
    spdx typedefs machine tests_registered opening links scripts)

# ---- the self-test: for each rule, a line that breaks it

plant() { # plant RULE, in the scratch copy that is the working directory
    case $1 in
    arrows) echo '#include "region/core/op.h"' >>net/loop.h ;;
    third_party) echo '#include <uv.h>' >>region/core/op.h ;;
    symbols | globals)
        mkdir planted
        if [[ $1 == symbols ]]; then
            echo 'long now(void); long time(long *); long now(void) { return time(0); }'
        else
            echo 'int count(void); int count(void) { static int n; return ++n; }'
        fi >planted/planted.c
        gcc -O0 -c planted/planted.c -o planted/planted.o && ar rc planted/libconflict.a planted/planted.o
        build=$PWD/planted
        ;;
    function_length) { echo 'int f(void)'; echo '{'; yes '    g();' | head -n 71; echo '}'; } >>net/loop.h ;;
    file_length) yes '' | head -n 501 >>net/loop.h ;;
    line_length) printf '/* %0100d */\n' 0 >>net/loop.h ;;
    banned_calls) echo 'static int f(const char *s) { return atoi(s); }' >>net/loop.h ;;
    promises) echo '/* TO''DO later */' >>net/loop.h ;;
    spdx) sed -i 1d net/loop.h ;;
    typedefs) echo 'typedef struct loop loop_t;' >>net/loop.h ;;
    machine) echo '/* see /ro''ot/notes */' >>net/loop.h ;;
    tests_registered) echo >tests/unit/forgotten.c ;;
    opening) echo '/* SPDX-License-Identifier: Apache-2.0 */' >net/silent.c ;;
    links) echo '[the plan](no-such-page.md)' >>README.md ;;
    scripts) echo 'if then' >>up ;;
    esac
}

passed=0 failed=0 skipped=0
count() { # count NAME OUTPUT
    if [[ -z $2 ]]; then
        passed=$((passed + 1))
    else
        failed=$((failed + 1))
        printf 'tidy: %s\n%s\n' "$1" "$(head -n 40 <<<"$2" | sed 's/^/    /')"
    fi
}

run_rule() {
    if [[ $1 =~ ^(symbols|globals)$ && ! -f $build/libconflict.a ]]; then
        echo "tidy: skipped $1: no libraries; give --build DIR"
        skipped=$((skipped + 1))
        return
    fi
    count "$1" "$("rule_$1" 2>/dev/null)"
}

if [[ -n $self_test ]]; then
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    for rule in "${rules[@]}"; do
        copy=$scratch/$rule
        mkdir "$copy"
        tar -C "$tree" --exclude=./build --exclude=node_modules --exclude=./.git -cf - . | tar -C "$copy" -xf -
        before=$(cd "$copy" && "rule_$rule" 2>/dev/null | wc -l)
        after=$(cd "$copy" && { plant "$rule"; "rule_$rule" 2>/dev/null | wc -l; })
        if [[ $rule =~ ^(symbols|globals)$ ]]; then before=0; fi
        count "self-test of $rule" "$(((after > before)) || echo "a planted violation was not seen")"
    done
elif [[ -n $only ]]; then
    run_rule "$only"
else
    for rule in "${rules[@]}"; do run_rule "$rule"; done
fi
echo "tidy: $passed passed, $failed failed, $skipped skipped"
exit $((failed > 0))
