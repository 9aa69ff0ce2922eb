#pragma once

// What the lines of functions.def call.
#include "kernels/special/bessel.h"
#include "kernels/special/bessel_modified.h"
#include "kernels/special/bits.h"
#include "kernels/special/gamma_incomplete.h"
#include "kernels/special/normal.h"
#include "kernels/special/polynomials.h"
#include "kernels/special/zeta.h"
