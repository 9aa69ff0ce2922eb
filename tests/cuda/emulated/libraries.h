#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/tensor/cuda/api.h"

// What the twins of NVIDIA's libraries need of the emulated devices (cuda_api.cpp). A twin has the library's functions
// by name, refuses wrong arguments with a text, and computes when the stream's turn comes.
namespace tensord::cuda::emulated {

// How many there are.
int devices();

// Held by each function of a twin. Queued work runs under it.
std::recursive_mutex& machine_mutex();
int device_of_stream(StreamHandle stream);
void queue_work(StreamHandle stream, std::function<void()> work);
// The same for work that needs other processes: false is not yet, and it is called again.
void queue_attempt(StreamHandle stream, std::function<bool()> work);
// The same, counted as a library's call.
void queue_call(StreamHandle stream, std::function<void()> work);
// The same for work that calls LAPACK, which runs on one thread.
void queue_lapack(StreamHandle stream, std::function<void()> work);
// The bytes from the address to the end of its allocation; 0 if it is not memory of the device.
size_t room_on(int device, const void* address);
// The same memory where the work may touch it.
void* inside(const void* address);
// Another process's memory of a device, which is a file here; null: no room. REQUIRE: machine_mutex() is held.
void* import_memory(int device, int file, size_t size_bytes);
// REQUIRES: import_memory gave it. Waits for the device.
void release_memory(void* data);

// What a twin's function answers: a status of the library, and the text for it.
struct Refused {
  int status;
  std::string text;
};
// The text of the calling thread's last refusal.
std::string& refusal();
// The body of a twin's function. Throws of Refused are its answer.
template <class Status, class Fn>
Status checked(const Fn& fn) {
  const std::lock_guard lock(machine_mutex());
  try {
    return fn();
  } catch (const Refused& refused) {
    refusal() = refused.text;
    return refused.status;
  }
}
void require(bool is_right, int status, const std::string& text);
// `count` elements of `size` bytes are memory of the device, and aligned.
void require_memory(int device, const void* address, size_t count, size_t size, int status, const std::string& what);

// The addresses in a list on the device, in the work of a call that was given the list.
template <class T>
std::vector<T*> listed(const void* list, int32_t count) {
  std::vector<T*> out(static_cast<size_t>(count));
  std::memcpy(out.data(), inside(list), out.size() * sizeof(T*));
  for (T*& one : out) one = static_cast<T*>(inside(one));
  return out;
}

// A float32 with TF32's ten stored bits of the mantissa; infinities and NaN stay.
inline double rounded_to_tf32(double x) {
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(x));
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  bits += 0x0fffu + (bits >> 13 & 1);
  return std::bit_cast<float>(bits & ~0x1fffu);
}

// The objects that a twin has made: descriptors, plans, handles.
class Objects {
 public:
  template <class T, class... A>
  T* make(A... arguments) {
    T* const out = new T{arguments...};
    living_.insert(out);
    return out;
  }
  template <class T>
  T* known(T* object, int status, const char* what) const {
    require(object && living_.contains(object), status, std::string(what) + " was not made, or is destroyed");
    return object;
  }
  template <class T>
  void destroy(T* object, int status, const char* what) {
    living_.erase(known(object, status, what));
    delete object;
  }

 private:
  std::set<const void*> living_;
};

}  // namespace tensord::cuda::emulated
