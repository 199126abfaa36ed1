# SPDX-License-Identifier: Apache-2.0
# cmake -DFROM=DIR -DTO=FILE.c -P embed.cmake: every DIR/*.yaml as an array of bytes, and a table of them.
file(GLOB files ${FROM}/*.yaml)
list(SORT files)
set(arrays)
set(table)
set(count 0)
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} hex HEX)
  string(LENGTH "${hex}" len)
  math(EXPR len "${len} / 2")
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n" bytes "${bytes}")
  string(APPEND arrays "static const char text_${count}[] = {\n${bytes}0};\n")
  string(APPEND table "    {\"${name}\", text_${count}, ${len}},\n")
  math(EXPR count "${count} + 1")
endforeach()
file(WRITE ${TO} "#include \"chaos/run/shipped.h\"\n${arrays}
const struct shipped_scenario shipped_scenarios[] = {\n${table}};
const uint32_t shipped_scenario_count = ${count};\n")
