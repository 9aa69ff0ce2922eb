#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>

#include "core/base/error.h"
#include "core/distributed/backends.h"
#include "core/distributed/gloo/gloo_backend.h"
#include "core/distributed/launch/environment.h"
#include "core/distributed/mpi/mpi_backend.h"
#include "core/distributed/nccl/nccl_backend.h"
#include "core/distributed/store/file_store.h"
#include "core/distributed/store/memory_store.h"
#include "core/distributed/store/prefix_store.h"
#include "core/distributed/store/tcp_store.h"
#include "python/binding/distributed.h"
#include "python/binding/interrupt.h"

// Stores and process groups; distributed/ gives them PyTorch's names.
namespace tensord::python {
namespace {

using distributed::Milliseconds;
using distributed::ProcessGroup;
using distributed::ReduceOp;
using distributed::Store;
using distributed::Work;
using distributed::WorkPtr;
using StorePtr = std::shared_ptr<Store>;

// Converts seconds; None means the object's own timeout.
Milliseconds milliseconds_of(const std::optional<double>& seconds) {
  if (!seconds) return Milliseconds(-1);
  check(*seconds >= 0 && *seconds < 1e9, "timeout: must be a number of seconds from 0, got ", *seconds);
  return Milliseconds(static_cast<int64_t>(*seconds * 1000));
}

std::string text_of(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }
nb::bytes bytes_of(const std::string& text) { return nb::bytes(text.data(), text.size()); }

std::vector<Tensor> tensors_of(nb::handle given) {
  std::vector<Tensor> out;
  for (nb::handle item : given) {
    if (!is_tensor(item.ptr())) throw nb::type_error("expected a list of tensors");
    out.push_back(tensor_in(item.ptr()));
  }
  return out;
}

ReduceOp op_of(const std::string& name, double factor) {
  using Kind = ReduceOp::Kind;
  static const std::pair<const char*, Kind> kinds[] = {
      {"sum", Kind::kSum}, {"avg", Kind::kAvg},   {"product", Kind::kProduct},
      {"min", Kind::kMin}, {"max", Kind::kMax},   {"band", Kind::kBand},
      {"bor", Kind::kBor}, {"bxor", Kind::kBxor}, {"premul_sum", Kind::kPremulSum}};
  for (const auto& [known, kind] : kinds) {
    if (name == known) return {kind, factor};
  }
  fail(ErrorCode::kInvalidArgument, "'", name, "' is not a ReduceOp");
}

// Waits in short pieces, so that Ctrl-C ends the wait. The operation itself continues.
void wait_for(Work& work, const std::optional<double>& timeout) {
  using Clock = std::chrono::steady_clock;
  constexpr Milliseconds kPiece{100};
  const auto end = timeout ? Clock::now() + milliseconds_of(timeout) : Clock::time_point::max();
  for (;;) {
    const bool is_last = timeout && end - Clock::now() <= kPiece;
    const bool is_done = without_gil([&] {
      if (!timeout) return work.wait_for(kPiece);
      try {
        work.wait(is_last ? std::max(Milliseconds(0), std::chrono::duration_cast<Milliseconds>(end - Clock::now()))
                          : kPiece);
      } catch (const Error&) {
        if (is_last || work.is_done()) throw;
        return false;
      }
      return true;
    });
    if (is_done) return;
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  }
}

void bind_stores(nb::module_& module) {
  nb::class_<Store> store(module, "Store");
  store.def("set", [](Store& self, const std::string& key, const nb::bytes& value) {
    const std::string text = text_of(value);
    without_gil([&] { self.set(key, text); });
  });
  store.def("get",
            [](Store& self, const std::string& key) { return bytes_of(interruptible([&] { return self.get(key); })); });
  store.def(
      "wait",
      [](Store& self, const std::vector<std::string>& keys, std::optional<double> timeout) {
        interruptible([&] { self.wait(keys, milliseconds_of(timeout)); });
      },
      nb::arg("keys"), nb::arg("timeout") = nb::none());
  store.def("check", [](Store& self, const std::vector<std::string>& keys) {
    return without_gil([&] { return self.check(keys); });
  });
  store.def("add", [](Store& self, const std::string& key, int64_t amount) {
    return without_gil([&] { return self.add(key, amount); });
  });
  store.def("compare_set",
            [](Store& self, const std::string& key, const nb::bytes& expected, const nb::bytes& desired) {
              const std::string before = text_of(expected), after = text_of(desired);
              return bytes_of(without_gil([&] { return self.compare_set(key, before, after); }));
            });
  store.def("append", [](Store& self, const std::string& key, const nb::bytes& value) {
    const std::string text = text_of(value);
    without_gil([&] { self.append(key, text); });
  });
  store.def("delete_key",
            [](Store& self, const std::string& key) { return without_gil([&] { return self.remove(key); }); });
  store.def("num_keys", [](Store& self) { return without_gil([&] { return self.count(); }); });
  store.def("list_keys", [](Store& self) { return without_gil([&] { return self.list_keys(); }); });
  store.def("set_timeout", [](Store& self, double timeout) { self.set_timeout(milliseconds_of(timeout)); });
  store.def_prop_ro("timeout", [](const Store& self) { return static_cast<double>(self.timeout().count()) / 1000; });

  module.def("tcp_store",
             [](const std::string& host, uint16_t port, int world_size, bool is_server, double timeout) -> StorePtr {
               if (is_server) distributed::warn_of_open_store(host);
               return interruptible([&] {
                 return std::make_shared<distributed::TcpStore>(
                     distributed::TcpStoreOptions{.host = host,
                                                  .port = port,
                                                  .is_server = is_server,
                                                  .world_size = world_size,
                                                  .timeout = milliseconds_of(timeout),
                                                  .token = distributed::launch_secret(),
                                                  .listen_host = distributed::listen_host_for(host)});
               });
             });
  module.def("tcp_store_port", [](const StorePtr& store) -> std::optional<int> {
    const auto* tcp = dynamic_cast<const distributed::TcpStore*>(store.get());
    return tcp ? std::optional<int>(tcp->port()) : std::nullopt;
  });
  module.def("file_store", [](const std::string& path, double timeout) -> StorePtr {
    return without_gil([&] { return std::make_shared<distributed::FileStore>(path, milliseconds_of(timeout)); });
  });
  module.def("memory_store", [](double timeout) -> StorePtr {
    return std::make_shared<distributed::MemoryStore>(milliseconds_of(timeout));
  });
  module.def("prefix_store", [](const std::string& prefix, StorePtr store) -> StorePtr {
    return std::make_shared<distributed::PrefixStore>(prefix, std::move(store));
  });
  module.def("has_gloo", distributed::has_gloo);
  module.def("has_mpi", distributed::has_mpi);
  module.def("has_nccl", distributed::has_nccl);
  module.def("check_nccl", [] { distributed::nccl_backends(); });
}

void bind_work(nb::module_& module) {
  nb::class_<Work> work(module, "Work");
  work.def(
      "wait",
      [](Work& self, std::optional<double> timeout) {
        wait_for(self, timeout);
        return true;
      },
      nb::arg("timeout") = nb::none());
  work.def("is_completed", &Work::is_done);
  work.def("is_success", [](const Work& self) { return self.is_done() && !self.error(); });
  work.def("exception", [](const Work& self) -> std::optional<std::string> {
    const auto error = self.error();
    return error ? std::optional<std::string>(error->what()) : std::nullopt;
  });
  work.def("source_rank", &Work::source_rank);
}

using Timeout = std::optional<double>;

void bind_reductions(nb::class_<ProcessGroup>& group) {
  group.def(
      "all_reduce",
      [](ProcessGroup& self, const Tensor& tensor, const std::string& op, double factor, Timeout timeout) {
        return self.all_reduce(tensor, op_of(op, factor), milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "all_reduce_coalesced",
      [](ProcessGroup& self, nb::handle tensors, const std::string& op, double factor, Timeout timeout) {
        return self.all_reduce_coalesced(tensors_of(tensors), op_of(op, factor), milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "reduce",
      [](ProcessGroup& self, const Tensor& tensor, int root, const std::string& op, double factor, Timeout timeout) {
        return self.reduce(tensor, root, op_of(op, factor), milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "reduce_scatter",
      [](ProcessGroup& self, const Tensor& output, nb::handle inputs, const std::string& op, double factor,
         Timeout timeout) {
        return self.reduce_scatter(output, tensors_of(inputs), op_of(op, factor), milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "reduce_scatter_tensor",
      [](ProcessGroup& self, const Tensor& output, const Tensor& input, const std::string& op, double factor,
         Timeout timeout) {
        return self.reduce_scatter_tensor(output, input, op_of(op, factor), milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
}

void bind_copies(nb::class_<ProcessGroup>& group) {
  group.def(
      "broadcast",
      [](ProcessGroup& self, const Tensor& tensor, int root, Timeout timeout) {
        return self.broadcast(tensor, root, milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "all_gather",
      [](ProcessGroup& self, nb::handle outputs, const Tensor& input, Timeout timeout) {
        return self.all_gather(tensors_of(outputs), input, milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "all_gather_into_tensor",
      [](ProcessGroup& self, const Tensor& output, const Tensor& input, Timeout timeout) {
        return self.all_gather_into_tensor(output, input, milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "gather",
      [](ProcessGroup& self, nb::handle outputs, const Tensor& input, int root, Timeout timeout) {
        return self.gather(tensors_of(outputs), input, root, milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "scatter",
      [](ProcessGroup& self, const Tensor& output, nb::handle inputs, int root, Timeout timeout) {
        return self.scatter(output, tensors_of(inputs), root, milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "all_to_all",
      [](ProcessGroup& self, nb::handle outputs, nb::handle inputs, Timeout timeout) {
        return self.all_to_all(tensors_of(outputs), tensors_of(inputs), milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg() = nb::none());
  group.def(
      "all_to_all_single",
      [](ProcessGroup& self, const Tensor& output, const Tensor& input, const std::vector<int64_t>& output_rows,
         const std::vector<int64_t>& input_rows, Timeout timeout) {
        return self.all_to_all_single(output, input, output_rows, input_rows, milliseconds_of(timeout));
      },
      nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg() = nb::none());
}

// Reads one tuple (is it a send, tensor, peer, tag) per message.
std::vector<ProcessGroup::Message> messages_of(nb::handle given) {
  using Way = ProcessGroup::Message::Way;
  std::vector<ProcessGroup::Message> messages;
  for (nb::handle item : given) {
    const nb::tuple parts = nb::cast<nb::tuple>(item);
    const nb::object tensor = parts[1];
    if (!is_tensor(tensor.ptr())) throw nb::type_error("expected a tensor");
    messages.push_back({nb::cast<bool>(parts[0]) ? Way::kSend : Way::kRecv, tensor_in(tensor.ptr()),
                        nb::cast<int>(parts[2]), nb::cast<uint32_t>(parts[3])});
  }
  return messages;
}

void bind_messages(nb::class_<ProcessGroup>& group) {
  group.def("send",
            [](ProcessGroup& self, const Tensor& tensor, int to, uint32_t tag) { return self.send(tensor, to, tag); });
  group.def("recv", [](ProcessGroup& self, const Tensor& tensor, int from, uint32_t tag) {
    return self.recv(tensor, from, tag);
  });
  group.def("start_messages",
            [](ProcessGroup& self, nb::handle messages) { return self.start_messages(messages_of(messages)); });
}

void bind_barriers(nb::class_<ProcessGroup>& group) {
  group.def(
      "barrier", [](ProcessGroup& self, Timeout timeout) { return self.barrier(milliseconds_of(timeout)); },
      nb::arg() = nb::none());
  group.def(
      "monitored_barrier",
      [](ProcessGroup& self, Timeout timeout, bool waits_for_all) {
        interruptible([&] { self.monitored_barrier(milliseconds_of(timeout), waits_for_all); });
      },
      nb::arg() = nb::none(), nb::arg() = false);
}

// Collectives on pickled objects; they block.
void bind_bytes(nb::class_<ProcessGroup>& group) {
  const auto list_of = [](const std::vector<std::string>& all) {
    nb::list out;
    for (const std::string& one : all) out.append(bytes_of(one));
    return out;
  };
  group.def("all_gather_bytes", [list_of](ProcessGroup& self, const nb::bytes& bytes) {
    const std::string own = text_of(bytes);
    return list_of(interruptible([&] { return self.all_gather_bytes(own); }));
  });
  group.def("gather_bytes", [list_of](ProcessGroup& self, const nb::bytes& bytes, int root) {
    const std::string own = text_of(bytes);
    return list_of(interruptible([&] { return self.gather_bytes(own, root); }));
  });
  group.def("broadcast_bytes", [](ProcessGroup& self, const nb::bytes& bytes, int root) {
    const std::string own = text_of(bytes);
    return bytes_of(interruptible([&] { return self.broadcast_bytes(own, root); }));
  });
  group.def("scatter_bytes", [](ProcessGroup& self, nb::handle given, int root) {
    std::vector<std::string> parts;
    for (nb::handle part : given) parts.push_back(text_of(nb::cast<nb::bytes>(part)));
    return bytes_of(interruptible([&] { return self.scatter_bytes(parts, root); }));
  });
}

void bind_group(nb::module_& module) {
  nb::class_<ProcessGroup> group(module, "Group");
  group.def_prop_ro("rank", &ProcessGroup::rank).def_prop_ro("size", &ProcessGroup::size);
  group.def_prop_ro("name", &ProcessGroup::name).def_prop_ro("backend", &ProcessGroup::backend_name);
  bind_reductions(group);
  bind_copies(group);
  bind_messages(group);
  bind_barriers(group);
  bind_bytes(group);
  group.def(
      "new_group",
      [](ProcessGroup& self, const std::vector<int>& ranks, Timeout timeout) -> std::shared_ptr<ProcessGroup> {
        return interruptible([&] { return self.new_group(ranks, milliseconds_of(timeout)); });
      },
      nb::arg(), nb::arg() = nb::none());
  group.def("abort", [](ProcessGroup& self, const std::string& reason) { without_gil([&] { self.abort(reason); }); });
  group.def("close", [](ProcessGroup& self, double timeout, bool serves_store) {
    without_gil([&] { self.close(milliseconds_of(timeout), serves_store); });
  });
  module.def("variables_of_other_launchers", distributed::variables_of_other_launchers);
  module.def("make_group", [](StorePtr store, const std::string& name, int rank, int size, const std::string& backend,
                              const std::string& master, double timeout, bool checks_all) {
    return interruptible([&] {
      distributed::GroupOptions options;
      options.timeout = milliseconds_of(timeout);
      options.checks_all = checks_all;
      return std::make_shared<ProcessGroup>(std::move(store), name, rank, size,
                                            distributed::backends_by_name(backend, master), options);
    });
  });
  module.def("make_mpi_world", [](double timeout, bool checks_all) -> std::shared_ptr<ProcessGroup> {
    return interruptible([&] {
      distributed::GroupOptions options;
      options.timeout = milliseconds_of(timeout);
      options.checks_all = checks_all;
      return distributed::make_mpi_world(options);
    });
  });
}

}  // namespace

void bind_distributed(nb::module_& parent) {
  nb::module_ module = parent.def_submodule("_distributed");
  bind_stores(module);
  bind_work(module);
  bind_group(module);
  bind_data_parallel(module);
}

}  // namespace tensord::python
