# Makes generated/move.ptx, or checks that it belongs to the sources beside it.
#   cmake -D MODE=write -D CLANG=clang-15 -P Ptx.cmake
#   cmake -D MODE=check -P Ptx.cmake
# The text is kept in the repository because CUDA's own compiler writes PTX that older drivers
# refuse, and clang is not to be had on every machine that builds hipio.
set(ptx ${CMAKE_CURRENT_LIST_DIR}/generated/move.ptx)
set(sources "")
foreach(name gpu.cu move.inc kernels.h)
  file(READ ${CMAKE_CURRENT_LIST_DIR}/${name} text)
  string(APPEND sources "${text}")
endforeach()
string(SHA256 sources "${sources}")

if(MODE STREQUAL "check")
  file(STRINGS ${ptx} stamp REGEX "^// sources: ")
  if(NOT stamp STREQUAL "// sources: ${sources}")
    message(FATAL_ERROR "generated/move.ptx is not of these sources: build the target update-ptx")
  endif()
  return()
endif()

execute_process(
  COMMAND ${CLANG} -x cuda --cuda-device-only --cuda-gpu-arch=sm_50 -nocudainc -nocudalib
    -Xclang -target-feature -Xclang +ptx60 -Wno-unknown-cuda-version
    -ffreestanding -O2 -Wall -Wextra -Werror -S -o ${ptx}.new ${CMAKE_CURRENT_LIST_DIR}/gpu.cu
  COMMAND_ERROR_IS_FATAL ANY)
file(READ ${ptx}.new text)
file(REMOVE ${ptx}.new)
string(REGEX REPLACE "^.*\n\\.version [0-9.]+" ".version 6.0" text "${text}")
file(WRITE ${ptx} "\
// SPDX-License-Identifier: MIT
// Generated from gpu.cu by the target update-ptx; not to be edited.
// sources: ${sources}
${text}")
