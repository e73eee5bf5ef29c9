# find_package(hipio): the target hipio::hipio, the C library of hipio.h.
include(${CMAKE_CURRENT_LIST_DIR}/hipio-targets.cmake)
