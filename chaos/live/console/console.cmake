# SPDX-License-Identifier: Apache-2.0
# Included by the root: the console's files become part of the library `live` (chaos/live/console.h).
set(console_folder ${CMAKE_SOURCE_DIR}/chaos/live/console)
set(console_code ${CMAKE_BINARY_DIR}/console/console_files.c)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/console)
file(GLOB console_parts CONFIGURE_DEPENDS ${console_folder}/*.html ${console_folder}/*.css
     ${console_folder}/*.mjs ${console_folder}/*.svg)
add_custom_command(OUTPUT ${console_code}
  COMMAND ${CMAKE_COMMAND} -D OUTPUT=${console_code} -D FOLDER=${console_folder} -P ${console_folder}/embed.cmake
  DEPENDS ${console_parts} ${console_folder}/embed.cmake)
target_sources(live PRIVATE ${console_code})
