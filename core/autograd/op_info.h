#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/ops/attributes/saved_for.h"
#include "core/ops/op.h"

namespace tensord::autograd {

// What the recorder needs to know of an operator, found out once.
struct OpInfo {
  enum class Role : uint8_t {
    kPassthrough,     // nothing of it is autograd's business, or what it calls is recorded by itself
    kConstant,        // its results are constants
    kRecord,          // gives new tensors, or views
    kWrite,           // writes its argument `target` and gives it back
    kWriteComposite,  // in-place form of a composite
    kOut,             // writes a keyword argument
  };
  // What an operator is to autograd, by its record alone.
  static Role role_of(const ops::Op& op);

  const ops::Op* op = nullptr;
  const ops::Op* gradient_op = nullptr;  // whose gradient it is: itself, or the functional form
  Role role = Role::kPassthrough;
  Role complex_role = Role::kPassthrough;  // where a tensor or a number of the call is complex
  bool is_view = false;
  bool gives_many = false;               // a list, or several tensors
  uint8_t target = 0;                    // the argument written, or viewed
  std::vector<uint8_t> tensors;          // arguments that are tensors or lists of them
  std::vector<uint8_t> written;          // arguments whose tensors are written
  std::vector<ops::SavedFor> saved_for;  // by argument; empty: what the operator saves
  std::string node_name;                 // "MulBackward0"
};

// Thread-safe; the reference stays valid.
const OpInfo& info_of(const ops::Op& op);

}  // namespace tensord::autograd
