# Target `tidy`: clang-tidy over the product's and the examples' sources, as .clang-tidy says.
find_program(HIPIO_RUN_CLANG_TIDY NAMES run-clang-tidy-14 run-clang-tidy)
mark_as_advanced(HIPIO_RUN_CLANG_TIDY)
if(HIPIO_RUN_CLANG_TIDY)
  add_custom_target(tidy
    COMMAND ${HIPIO_RUN_CLANG_TIDY} -quiet -p ${PROJECT_BINARY_DIR}
      "^${PROJECT_SOURCE_DIR}/(engine|adio|kernels|hipsim|tools|bench|examples)/.*"
    WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}
    COMMENT "clang-tidy"
    USES_TERMINAL
    VERBATIM)
endif()
