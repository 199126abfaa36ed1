# SPDX-License-Identifier: Apache-2.0
# cmake -D OUTPUT=FILE -D FOLDER=FOLDER -P embed.cmake: the console's files as one C file, with the type of each
# and a tag that changes when it does. A file is served at its name, index.html at `/`.
file(GLOB names RELATIVE ${FOLDER} ${FOLDER}/*.html ${FOLDER}/*.css ${FOLDER}/*.mjs ${FOLDER}/*.svg)
list(SORT names)
set(type_html "text/html; charset=utf-8")
set(type_css "text/css; charset=utf-8")
set(type_mjs "text/javascript; charset=utf-8")
set(type_svg "image/svg+xml")

set(code "#include \"chaos/live/console.h\"\n\n")
set(table "")
set(count 0)
foreach(name ${names})
  file(READ ${FOLDER}/${name} hex HEX)
  file(SHA256 ${FOLDER}/${name} digest)
  string(SUBSTRING ${digest} 0 16 tag)
  string(REGEX REPLACE "(..)" "0x\\1," bytes ${hex})
  string(REGEX MATCH "[a-z]+$" extension ${name})
  string(REGEX REPLACE "^index\\.html$" "" path ${name})
  string(APPEND code "static const uint8_t file_${count}[] = {${bytes}};\n")
  string(APPEND table "    {\"/${path}\", \"${type_${extension}}\", \"\\\"${tag}\\\"\", "
                      "{file_${count}, sizeof(file_${count})}},\n")
  math(EXPR count "${count} + 1")
endforeach()
string(APPEND code "\nconst struct console_file console_files[] = {\n${table}};\n"
                   "const uint32_t console_file_count = ${count};\n")
file(WRITE ${OUTPUT} "${code}")
