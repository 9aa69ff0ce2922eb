#pragma once

// What the lines of special.def call.
#include "kernels/base/zeta.h"
#include "kernels/special/bessel.h"
#include "kernels/special/bessel_modified.h"
#include "kernels/special/bits.h"
#include "kernels/special/gamma_incomplete.h"
#include "kernels/special/normal.h"
#include "kernels/special/polynomials.h"
