#include "tests/cuda/emulated/kernel_names.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <regex>
#include <utility>
#include <vector>

namespace tensord::cuda::emulated {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> out(abi::__cxa_demangle(name, nullptr, nullptr, &status), &std::free);
  return status == 0 ? out.get() : name;
}

Dl_info this_place() {
  Dl_info here{};
  if (dladdr(reinterpret_cast<const void*>(&kernel_name), &here) == 0) std::abort();
  return here;
}

// Said at the end where there is PTX, since a kernel that is not found by its name runs without it.
struct Report {
  size_t by_ptx = 0, others = 0;
  ~Report() {
    if (by_ptx + others > 0)
      std::fprintf(stderr, "emulated CUDA: %zu kernels ran by nvcc's PTX, %zu others\n", by_ptx, others);
  }
};
Report report;

// This library's functions by their offsets, from its own file: those of unnamed namespaces are in no other table.
std::map<uintptr_t, std::string> functions_of(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  const std::vector<char> data(std::istreambuf_iterator<char>(in), {});
  std::map<uintptr_t, std::string> out;
  Elf64_Ehdr header;
  if (data.size() < sizeof header) return out;
  std::memcpy(&header, data.data(), sizeof header);
  const auto* const sections = reinterpret_cast<const Elf64_Shdr*>(data.data() + header.e_shoff);
  for (size_t i = 0; i < header.e_shnum; ++i) {
    if (sections[i].sh_type != SHT_SYMTAB) continue;
    const auto* const symbols = reinterpret_cast<const Elf64_Sym*>(data.data() + sections[i].sh_offset);
    const char* const names = data.data() + sections[sections[i].sh_link].sh_offset;
    for (size_t k = 0; k < sections[i].sh_size / sizeof(Elf64_Sym); ++k) {
      if (ELF64_ST_TYPE(symbols[k].st_info) == STT_FUNC) out[symbols[k].st_value] = names + symbols[k].st_name;
    }
  }
  return out;
}

std::vector<std::pair<const char*, PtxFunction>>& all_ptx() {
  static auto* const all = new std::vector<std::pair<const char*, PtxFunction>>;
  return *all;
}

}  // namespace

const std::string& this_library() {
  static const auto* const file = new std::string(this_place().dli_fname);
  return *file;
}

std::string kernel_name(const void* kernel) {
  static const auto* const functions = new std::map<uintptr_t, std::string>(functions_of(this_library()));
  static const auto base = reinterpret_cast<uintptr_t>(this_place().dli_fbase);
  const auto found = functions->find(reinterpret_cast<uintptr_t>(kernel) - base);
  return found == functions->end() ? "" : demangled(found->second.c_str());
}

bool add_ptx(const char* mangled, PtxFunction function) {
  all_ptx().emplace_back(mangled, function);
  return true;
}

PtxFunction ptx_of(const void* kernel) {
  if (all_ptx().empty()) return nullptr;
  static const auto* const by_name = [] {
    auto* const out = new std::map<std::string, PtxFunction>;
    const std::regex library("cuda::std::__[0-9a-z_]+::");  // nvcc's
    for (const auto& [name, function] : all_ptx())
      (*out)[std::regex_replace(demangled(name), library, "std::")] = function;
    return out;
  }();
  const auto found = by_name->find(kernel_name(kernel));
  const bool is_found = found != by_name->end();
  ++(is_found ? report.by_ptx : report.others);
  return is_found ? found->second : nullptr;
}

}  // namespace tensord::cuda::emulated
