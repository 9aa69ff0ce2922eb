# The library for CUDA, libtensord_cuda.so: the kernels and what calls the CUDA runtime. The engine opens it at run time
# (core/tensor/cuda/plugin.h), so one engine serves machines with and without a GPU, and only this library needs nvcc.
set(TENSORD_WITH_CUDA OFF)
if(NOT TENSORD_CUDA STREQUAL "OFF")
  if(NOT CMAKE_CUDA_ARCHITECTURES)
    set(CMAKE_CUDA_ARCHITECTURES 90)  # code for one chip, and PTX for later ones
  endif()
  find_program(TENSORD_NVCC nvcc HINTS /usr/local/cuda/bin ${CMAKE_SOURCE_DIR}/build/cuda/bin)
  if(TENSORD_NVCC)
    set(CMAKE_CUDA_COMPILER ${TENSORD_NVCC})
    enable_language(CUDA)
    set(CMAKE_CUDA_STANDARD 20)
    # CMake before 3.25.2 does not know that nvcc supports C++20.
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
    endif()
    # These versions also link a library that CUDA no longer has.
    if(NOT TARGET CUDA::nvToolsExt)
      add_library(CUDA::nvToolsExt INTERFACE IMPORTED)
    endif()
    find_package(CUDAToolkit REQUIRED)
    set(TENSORD_WITH_CUDA ON)
  elseif(TENSORD_CUDA STREQUAL "ON")
    message(FATAL_ERROR "TENSORD_CUDA is ON but nvcc was not found")
  endif()
endif()
message(STATUS "tensord: library for CUDA ${TENSORD_WITH_CUDA}")

file(GLOB TENSORD_CUDA_SOURCES CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cu ${CMAKE_SOURCE_DIR}/kernels/cuda/layers/*.cu)
file(GLOB TENSORD_CUDA_HEADERS CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/kernels/cuda/*.h ${CMAKE_SOURCE_DIR}/kernels/cuda/*.cuh ${CMAKE_SOURCE_DIR}/kernels/cuda/layers/*.h)
set(TENSORD_CUDA_LIBRARY_CALLS blas dnn fft library solver)
list(TRANSFORM TENSORD_CUDA_LIBRARY_CALLS REPLACE "(.+)" "${CMAKE_SOURCE_DIR}/kernels/cuda/libraries/\\1.cpp")
list(APPEND TENSORD_CUDA_SOURCES ${CMAKE_SOURCE_DIR}/kernels/cuda/plugin/table.cpp ${TENSORD_CUDA_LIBRARY_CALLS})
if(TENSORD_WITH_CUDA)
  add_library(tensord_cuda MODULE ${TENSORD_CUDA_SOURCES} ${CMAKE_SOURCE_DIR}/kernels/cuda/plugin/nvidia.cpp
                                 ${CMAKE_SOURCE_DIR}/kernels/cuda/libraries/nvidia_headers.cpp)
  # The CUDA runtime is linked statically, so that it opens on machines without a driver, and says so.
  target_link_libraries(tensord_cuda PRIVATE CUDA::cudart_static)
  target_compile_options(tensord_cuda PRIVATE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
  target_link_options(tensord_cuda PRIVATE LINKER:--no-undefined LINKER:--exclude-libs,ALL -static-libstdc++ -static-libgcc)
  # Programs of this build and installed programs search for it there.
  set_target_properties(tensord_cuda PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/tensord
                        CXX_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden)
  # Where nvcc was found and not asked for, only `scripts/build dev tensord_cuda` builds it: tests run the emulated devices.
  if(NOT TENSORD_CUDA STREQUAL "ON")
    set_target_properties(tensord_cuda PROPERTIES EXCLUDE_FROM_ALL ON)
  endif()
  include(GNUInstallDirs)
  install(TARGETS tensord_cuda LIBRARY DESTINATION lib/tensord COMPONENT cuda OPTIONAL)
endif()
