# SPDX-License-Identifier: Apache-2.0
# The scenarios of chaos/scenarios become a part of the library run.
file(GLOB shipped CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/chaos/scenarios/*.yaml)
add_custom_command(OUTPUT ${CMAKE_BINARY_DIR}/shipped_scenarios.c
  COMMAND ${CMAKE_COMMAND} -DFROM=${CMAKE_SOURCE_DIR}/chaos/scenarios -DTO=${CMAKE_BINARY_DIR}/shipped_scenarios.c
          -P ${CMAKE_SOURCE_DIR}/chaos/run/embed.cmake
  DEPENDS ${shipped} ${CMAKE_SOURCE_DIR}/chaos/run/embed.cmake)
target_sources(run PRIVATE ${CMAKE_BINARY_DIR}/shipped_scenarios.c)
