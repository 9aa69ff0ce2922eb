#pragma once

#include <string>

namespace tensord::kernels::linalg {

// What UPLO says. Throws Error for what is neither 'L' nor 'U'.
bool is_upper_triangle(const std::string& uplo);

}  // namespace tensord::kernels::linalg
