#pragma once

namespace tensord::autograd {

// Lets ops::run record. Called before main wherever this library is linked.
void install_recorder();

// While it lives, the calling thread's operators compute and nothing else: what an operator does inside
// is not recorded, nor are its views tracked. Grad mode stays what it is.
inline thread_local bool is_below_autograd = false;

class BelowAutogradScope {
 public:
  BelowAutogradScope() : before_(is_below_autograd) { is_below_autograd = true; }
  ~BelowAutogradScope() { is_below_autograd = before_; }
  BelowAutogradScope(const BelowAutogradScope&) = delete;
  BelowAutogradScope& operator=(const BelowAutogradScope&) = delete;

 private:
  bool before_;
};

}  // namespace tensord::autograd
