// Taylor's series, whose degree depends on the norm. The matrix is halved until degree 18 is enough, and the result
// squared as often.
#include "kernels/linalg/matrix_exp.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace tensord::kernels::linalg {
namespace {

struct Degree {
  int degree;
  double float_bound, double_bound;  // the largest norm for which the remainder of the series is below the precision
};
// From Bader, Blanes and Casas, "Computing the matrix exponential with an optimized Taylor polynomial approximation".
constexpr std::array<Degree, 6> kDegrees = {{{1, 1.192092800768788e-07, 2.220446049250313e-16},
                                             {2, 5.978858893805233e-04, 2.580956802971767e-08},
                                             {4, 5.116619363445086e-02, 3.397168839976962e-04},
                                             {8, 5.800524627688768e-01, 4.991228871115323e-02},
                                             {12, 1.461661507209034e+00, 2.996158913811580e-01},
                                             {18, 3.010066362817634e+00, 1.090863719290036e+00}}};

template <class T>
class Exponential {
 public:
  Exponential(const Matrix& a, const Matrix& out, const Matrix& work) : n_(a.rows), a_(a), out_(out), work_(work) {}

  void run() {
    const double norm = column_norm();
    if (!std::isfinite(norm)) return fill(out_, std::numeric_limits<T>::quiet_NaN());
    const auto bound = [](const Degree& degree) { return sizeof(T) == 4 ? degree.float_bound : degree.double_bound; };
    int halvings = 0, degree = kDegrees.back().degree;
    if (norm > bound(kDegrees.back())) {
      halvings = static_cast<int>(std::ceil(std::log2(norm / bound(kDegrees.back()))));
    } else {
      degree =
          std::find_if(kDegrees.begin(), kDegrees.end(), [&](const Degree& d) { return norm <= bound(d); })->degree;
    }
    series(degree, std::ldexp(1.0, -halvings));
    for (int i = 0; i < halvings; ++i) {
      multiply(out_, out_, spare(0));
      copy(spare(0), out_);
    }
  }

 private:
  Matrix spare(int64_t index) const { return {static_cast<T*>(work_.data) + index * n_ * n_, n_, n_, n_, 1}; }
  T* data(const Matrix& m) const { return static_cast<T*>(m.data); }
  void fill(const Matrix& m, T value) const { std::fill_n(data(m), n_ * n_, value); }
  void copy(const Matrix& from, const Matrix& to) const { std::copy_n(data(from), n_ * n_, data(to)); }
  void multiply(const Matrix& a, const Matrix& b, const Matrix& to) const { gemm(dtype_of<T>, 1, a, b, 0, to); }
  void add(const Matrix& to, const Matrix& x, double factor) const {
    const T scale = static_cast<T>(factor);
    for (int64_t i = 0; i < n_ * n_; ++i) data(to)[i] += scale * data(x)[i];
  }

  double column_norm() const {
    double largest = 0;
    for (int64_t c = 0; c < n_; ++c) {
      double sum = 0;
      for (int64_t r = 0; r < n_; ++r) sum += std::abs(static_cast<double>(data(a_)[r * n_ + c]));
      if (!(sum <= largest)) largest = sum;
    }
    return largest;
  }

  // Horner's rule in A^step, whose coefficients are polynomials in A of a degree below `step`.
  void series(int degree, double scale) const {
    const int step = static_cast<int>(std::ceil(std::sqrt(static_cast<double>(degree))));
    std::array<Matrix, 6> powers{};  // powers[i] = (scale A)^i, from spare(2) on
    powers[1] = spare(2);
    fill(powers[1], T(0));
    add(powers[1], a_, scale);
    for (int i = 2; i <= step; ++i)
      multiply(powers[1], powers[static_cast<size_t>(i) - 1], powers[static_cast<size_t>(i)] = spare(i + 1));
    std::array<double, 19> inverse_factorial{1};
    for (size_t i = 1; i < inverse_factorial.size(); ++i) {
      inverse_factorial[i] = inverse_factorial[i - 1] / static_cast<double>(i);
    }
    fill(out_, T(0));
    for (int block = degree / step; block >= 0; --block) {
      if (block < degree / step) {
        multiply(out_, powers[static_cast<size_t>(step)], spare(0));
        copy(spare(0), out_);
      }
      for (int i = 0; i < step && block * step + i <= degree; ++i) {
        const double factor = inverse_factorial[static_cast<size_t>(block * step + i)];
        if (i > 0) {
          add(out_, powers[static_cast<size_t>(i)], factor);
        } else {
          for (int64_t d = 0; d < n_; ++d) data(out_)[d * n_ + d] += static_cast<T>(factor);
        }
      }
    }
  }

  int64_t n_;
  Matrix a_, out_, work_;
};

}  // namespace

void matrix_exp(DType dtype, const Matrix& a, const Matrix& out, const Matrix& work) {
  if (a.rows == 0) return;
  if (dtype == DType::kFloat32)
    Exponential<float>(a, out, work).run();
  else
    Exponential<double>(a, out, work).run();
}

}  // namespace tensord::kernels::linalg
