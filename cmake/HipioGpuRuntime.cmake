# The GPU runtime that the project's own GPU programs (examples, tests, bench) are compiled against.
# The driver itself needs none: it loads whichever the application uses.
#
#   HIPIO_TEST_GPU      hip or cuda: what the user asks for
#   HIPIO_GPU_RUNTIME   set to hip, cuda, or empty where the headers or the library are missing
#   hipio_gpu_runtime   target to link with
include_guard(GLOBAL)

set(HIPIO_TEST_GPU "hip" CACHE STRING "GPU runtime of tests and examples: hip or cuda")
set_property(CACHE HIPIO_TEST_GPU PROPERTY STRINGS hip cuda)
set(HIPIO_GPU_RUNTIME "" CACHE INTERNAL "GPU runtime found")

if(HIPIO_TEST_GPU STREQUAL "cuda")
  find_package(CUDAToolkit QUIET)
  if(CUDAToolkit_FOUND)
    add_library(hipio_gpu_runtime INTERFACE)
    # By path: CUDA::cudart is known only in the folder that looked for it.
    target_include_directories(hipio_gpu_runtime SYSTEM INTERFACE ${CUDAToolkit_INCLUDE_DIRS})
    target_link_libraries(hipio_gpu_runtime INTERFACE ${CUDA_cudart_LIBRARY})
    set(HIPIO_GPU_RUNTIME cuda CACHE INTERNAL "GPU runtime found")
  endif()
elseif(HIPIO_TEST_GPU STREQUAL "hip")
  set(hipio_rocm_hints $ENV{ROCM_PATH} /opt/rocm)
  find_path(HIPIO_HIP_INCLUDE_DIR hip/hip_runtime_api.h
    HINTS ${hipio_rocm_hints} PATH_SUFFIXES include)
  find_library(HIPIO_HIP_LIBRARY amdhip64 HINTS ${hipio_rocm_hints} PATH_SUFFIXES lib)
  mark_as_advanced(HIPIO_HIP_INCLUDE_DIR HIPIO_HIP_LIBRARY)
  if(HIPIO_HIP_INCLUDE_DIR AND HIPIO_HIP_LIBRARY)
    add_library(hipio_gpu_runtime INTERFACE)
    target_include_directories(hipio_gpu_runtime SYSTEM INTERFACE ${HIPIO_HIP_INCLUDE_DIR})
    target_compile_definitions(hipio_gpu_runtime INTERFACE __HIP_PLATFORM_AMD__)
    target_link_libraries(hipio_gpu_runtime INTERFACE ${HIPIO_HIP_LIBRARY})
    set(HIPIO_GPU_RUNTIME hip CACHE INTERNAL "GPU runtime found")
  endif()
else()
  message(FATAL_ERROR "HIPIO_TEST_GPU is '${HIPIO_TEST_GPU}': it must be hip or cuda")
endif()
