# SPDX-License-Identifier: Apache-2.0
# Live tests: programs that start real clusters out of this build directory. Label `live`; `ctest -LE live` leaves
# them out. A test that can run nothing here, for want of a client, says so and is counted as skipped.
find_program(PYTHON3 python3 PATHS /usr/bin NO_DEFAULT_PATH)
if(PYTHON3)
  file(GLOB live_tests CONFIGURE_DEPENDS live/live_*.py live/*_test.py)
  list(FILTER live_tests EXCLUDE REGEX "/grpc_client_test") # net_link_test runs it, with a server's port
  list(FILTER live_tests EXCLUDE REGEX "/live_broken") # runs programs with planted bugs: sim/CMakeLists.txt
  foreach(source ${live_tests})
    get_filename_component(stem ${source} NAME_WE)
    add_test(NAME ${stem} COMMAND ${PYTHON3} ${source} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${stem} PROPERTIES LABELS live TIMEOUT 1200 SKIP_RETURN_CODE 77
      ENVIRONMENT "TIDEMARK_BUILD=${CMAKE_BINARY_DIR};PYTHONDONTWRITEBYTECODE=1")
  endforeach()

  # ctest begins with what takes longest, and so two at a time end together.
  set_tests_properties(live_strong_faults PROPERTIES COST 60)
  set_tests_properties(live_losses PROPERTIES COST 50)
  set_tests_properties(live_strong_rounds PROPERTIES COST 25)

  # Reports of made-up runs, which live_report.py looks at.
  add_test_library(report)
  add_executable(report_pages_main live/report_pages_main.c)
  target_link_libraries(report_pages_main testlib_report)

  # Judges the histories that live_strong_rounds.py records.
  add_executable(linear_main live/linear_main.c)
  target_link_libraries(linear_main check)

  # The whole run of the kill test, as against the short one of ./check.
  add_custom_target(kill
    COMMAND ${CMAKE_COMMAND} -E env TIDEMARK_BUILD=${CMAKE_BINARY_DIR} TIDEMARK_KILL_ROUNDS=50
            TIDEMARK_KILL_WRITES=20000 ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/live/live_kill.py
    DEPENDS tidemark tidemark-region tidemark-witness USES_TERMINAL)

  # What ./check runs of strong tables in part: 200 rounds under faults, 10,000 writes each read elsewhere at
  # once; and what it does not measure: latencies, and how long a leader's death is felt.
  set(live_environment ${CMAKE_COMMAND} -E env TIDEMARK_BUILD=${CMAKE_BINARY_DIR} PYTHONDONTWRITEBYTECODE=1)
  set(live_programs DEPENDS tidemark tidemark-region tidemark-witness linear_main USES_TERMINAL)
  add_custom_target(strong_rounds
    COMMAND ${live_environment} ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/live/live_strong_rounds.py --rounds 200
    ${live_programs})
  add_custom_target(strong_reads
    COMMAND ${live_environment} TIDEMARK_STRONG_READS=10000
            ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/live/live_strong_sdk.py
    ${live_programs})
  add_custom_target(strong_latency
    COMMAND ${live_environment} ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/live/live_strong_latency.py --measure
    ${live_programs})

  # Fifty Regions lost under each mode, of which ./check loses three; and ten minutes of random faults on both.
  add_custom_target(losses
    COMMAND ${live_environment} ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/live/live_losses.py --runs 50
    ${live_programs})
  add_custom_target(soak
    COMMAND ${live_environment} ${PYTHON3} ${CMAKE_CURRENT_SOURCE_DIR}/live/soak.py
    ${live_programs})
endif()
