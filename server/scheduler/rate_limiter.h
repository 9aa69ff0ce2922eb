#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/mutex.h"

namespace tensord::server {

// Counted resources that the models of a server share (Triton's rate limiter). A run holds the resources that its
// model's configuration names, and waits until they are free. Grants are weighted: each adds the model's priority to
// its virtual time (priority 2 gets half as many grants as 1), and the waiting model with the least virtual time is
// next. No other model overtakes it on its devices, even if its resources are free, so that models with large needs are
// not starved. A resource that is not global exists once for each device. Thread-safe.
class RateLimiter {
 public:
  struct Resource {
    std::string name;
    bool is_global = false;
    uint32_t count = 0;
  };
  // Units of a resource, by its name and whether it is global.
  using Limits = std::map<std::pair<std::string, bool>, uint64_t>;

  // The same for one device, in the place of what holds for all of them.
  using DeviceLimits = std::map<std::pair<std::string, int>, uint64_t>;

  // A resource without a limit has as many units as the model with the largest need asks for.
  explicit RateLimiter(Limits limits = {}, DeviceLimits device_limits = {})
      : limits_(std::move(limits)), device_limits_(std::move(device_limits)) {}
  ~RateLimiter();
  RateLimiter(const RateLimiter&) = delete;
  RateLimiter& operator=(const RateLimiter&) = delete;

  class Client;
  // The resources of one run; releases them on destruction.
  class Permit {
   public:
    Permit(Permit&& other) noexcept : client_(std::exchange(other.client_, nullptr)), place_(other.place_) {}
    Permit& operator=(Permit&& other) noexcept {
      std::swap(client_, other.client_);
      std::swap(place_, other.place_);
      return *this;
    }
    ~Permit();
    // Where the run is allowed.
    int device() const;

   private:
    friend class RateLimiter;
    Permit(Client* client, size_t place) : client_(client), place_(place) {}
    Client* client_;
    size_t place_;  // index in client_->places_
  };

  // One model. Must outlive its permits.
  class Client {
   public:
    ~Client();
    // The device of a worker.
    int device_of(size_t worker) const { return devices_.empty() ? 0 : devices_.at(worker); }
    // None if it would have to wait. A device has at most as many permits as workers.
    std::optional<Permit> try_acquire() { return limiter_.try_acquire(*this); }
    // Waits; none after stop(). Releases `before`, the client's previous permit, and queues for the next one in one
    // step, so that a busy model neither keeps its turn nor loses it. Without a device, any of the client's.
    std::optional<Permit> acquire(std::optional<Permit> before = {}, std::optional<int> device = {}) {
      return limiter_.acquire(*this, before, device);
    }
    // Makes all current and future acquire() calls return none.
    void stop() { limiter_.stop(*this); }

   private:
    friend class RateLimiter;
    // Of a device with workers of the client.
    struct Place {
      size_t workers = 0;
      size_t running = 0;
    };
    Client(RateLimiter& limiter, std::vector<Resource> needs, uint32_t priority, std::vector<int> devices);
    RateLimiter& limiter_;
    const std::vector<Resource> needs_;
    const uint64_t step_;
    const std::vector<int> devices_;  // by worker; empty: any number of workers on device 0
    std::vector<int> place_devices_;  // of each place; not changed
    // Guarded by limiter_.mutex_.
    std::vector<Place> places_;
    uint64_t virtual_time_ = 0;
    bool is_stopped_ = false;
  };

  // `devices`: of each worker; empty: all on device 0. Throws Error{kInvalidArgument} when a limit is below what a run
  // needs, or a resource is global for one model and not for another.
  std::unique_ptr<Client> add_client(const std::string& model, std::vector<Resource> needs, uint32_t priority,
                                     std::vector<int> devices = {});
  // Units that exist and units in use. The limit of a resource that is not global also applies to the global resource
  // of the same name, unless that has its own.
  std::pair<uint64_t, uint64_t> usage(const std::string& name, bool is_global, int device = 0) const;
  size_t waiting() const;

 private:
  struct Key {
    std::string name;
    bool is_global = false;
    int device = 0;  // 0 for global resources
    auto operator<=>(const Key&) const = default;
  };
  struct Waiter {
    Client* client;
    std::optional<int> device;  // none: any
    CondVar changed;
    std::optional<size_t> place = {};  // that was granted
  };
  // What clients that wait keep others from: work on these devices, and use of these global resources.
  struct Claims {
    std::set<int> devices;
    std::set<std::string> resources;
  };
  struct Pool {
    uint64_t limit = 0;
    uint64_t used = 0;
    std::multimap<uint32_t, const Client*> needs;  // by client, the largest last
  };

  std::optional<Permit> try_acquire(Client& client);
  std::optional<Permit> acquire(Client& client, std::optional<Permit>& before, std::optional<int> device);
  void stop(Client& client);
  void release(Client& client, size_t place);
  void remove(Client& client);
  void update_limit(const Key& key, Pool& pool) const;
  std::optional<uint64_t> limit_of(const Key& key) const;
  bool is_in_use(const std::string& name, bool is_global) const TENSORD_REQUIRES(mutex_);
  static std::vector<Key> keys_of(const Client& client, const Resource& need);
  void check_need(const std::string& model, const Client& client, const Resource& need) const TENSORD_REQUIRES(mutex_);
  bool fits(const Client& client, int device, const Claims& claims) const TENSORD_REQUIRES(mutex_);
  // Where the client may run now, on the device that has the fewest runs of it; none: nowhere.
  std::optional<size_t> find_place(const Client& client, std::optional<int> device, const Claims& claims) const
      TENSORD_REQUIRES(mutex_);
  static void claim(const Client& client, std::optional<int> device, Claims& claims);
  void take(Client& client, size_t place) TENSORD_REQUIRES(mutex_);
  void give_back(Client& client, size_t place) TENSORD_REQUIRES(mutex_);
  bool grant_next() TENSORD_REQUIRES(mutex_);
  void grant_waiting() TENSORD_REQUIRES(mutex_);

  const Limits limits_;
  const DeviceLimits device_limits_;
  mutable Mutex mutex_;
  std::map<Key, Pool> pools_ TENSORD_GUARDED_BY(mutex_);
  std::list<Waiter*> waiting_ TENSORD_GUARDED_BY(mutex_);  // in order of arrival
  uint64_t virtual_time_ TENSORD_GUARDED_BY(mutex_) = 0;   // of the last grant
};

}  // namespace tensord::server
