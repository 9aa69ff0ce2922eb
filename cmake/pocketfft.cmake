# tensord_pocketfft: the PocketFFT header that kernels/fft uses, from Debian's python3-pythran. scripts/pocketfft
# extracts it without installing the package. The contents are pinned, because another version may compute other bits.
find_path(POCKETFFT_INCLUDE pocketfft.hpp
  HINTS ${CMAKE_SOURCE_DIR}/build/pocketfft /usr/lib/python3/dist-packages/pythran/pythonic/numpy/fft NO_CMAKE_FIND_ROOT_PATH)
if(NOT POCKETFFT_INCLUDE)
  message(FATAL_ERROR "pocketfft.hpp is missing; scripts/setup gets it")
endif()
file(SHA256 ${POCKETFFT_INCLUDE}/pocketfft.hpp pocketfft_hash)
if(NOT pocketfft_hash STREQUAL 39d2ff25440a5b8d12713402c85bf42bf5609f2ae6b0339228d87988dbf3facb)
  message(FATAL_ERROR "${POCKETFFT_INCLUDE}/pocketfft.hpp is not the file that was tested: ${pocketfft_hash}")
endif()
add_library(tensord_pocketfft INTERFACE)
target_include_directories(tensord_pocketfft SYSTEM INTERFACE ${POCKETFFT_INCLUDE})
