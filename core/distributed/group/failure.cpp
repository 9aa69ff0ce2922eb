// How a group ends, and how it detects that it must.
#include <algorithm>

#include "core/base/log.h"
#include "core/base/mutex.h"
#include "core/distributed/group/item.h"

namespace tensord::distributed {
namespace {

constexpr const char* kFailure = "failure";  // code and message of the first error
constexpr Milliseconds kStoreAnswer{2000};   // an ending group waits no longer than this for the store
constexpr Milliseconds kPeersReason{300};

std::string at_key(int rank) { return "at/" + std::to_string(rank); }

std::string encode(const Error& error) { return concat(static_cast<int>(error.code()), " ", error.what()); }

Error decode(const std::string& text) {
  const size_t space = text.find(' ');
  if (space == std::string::npos) return Error(ErrorCode::kInternal, text);
  const int code = std::clamp(std::atoi(text.c_str()), 0, static_cast<int>(ErrorCode::kInternal));
  return Error(static_cast<ErrorCode>(code), text.substr(space + 1));
}

uint64_t number_of(const std::string& at) { return std::strtoull(at.c_str(), nullptr, 10); }

}  // namespace

void ProcessGroup::abort(const std::string& reason) {
  end_with(Error(ErrorCode::kCancelled, concat("group ", name_, " was aborted by rank ", rank_, ": ", reason)));
}

Error ProcessGroup::end_with(const Error& error) {
  Error first = error;
  try {
    // A lost peer has usually met an error of its own and is about to report it.
    if (error.code() == ErrorCode::kUnavailable) wait_for_reason();
    first = decode(store_->compare_set(kFailure, "", encode(error)));
  } catch (const Error&) {
    // Without the store each rank reports its own error.
  }
  end_here(first);
  const MutexLock lock(mutex_);
  return *failure_;
}

void ProcessGroup::wait_for_reason() {
  try {
    store_->wait(kFailure, kPeersReason);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::kDeadlineExceeded) throw;
  }
}

void ProcessGroup::end_here(const Error& error) {
  std::deque<std::shared_ptr<Item>> waiting;
  {
    const MutexLock lock(mutex_);
    if (failure_ || is_closing_) {
      if (!failure_) failure_ = error;
      return;
    }
    failure_ = error;
    waiting.swap(launched_);
    waiting.insert(waiting.end(), std::make_move_iterator(queue_.begin()), std::make_move_iterator(queue_.end()));
    queue_.clear();
  }
  backend_->abort();
  for (const auto& item : waiting) item->work->finish(error);
  changed_.notify_all();
}

// Waits for the first error of any rank, and checks periodically what stalls the running operation.
void ProcessGroup::watch() {
  for (;;) {
    std::shared_ptr<Item> item;
    SteadyTime started;
    {
      const MutexLock lock(mutex_);
      if (is_closing_ || failure_) return;
      item = launched_.empty() ? current_ : launched_.front();
      if (item) started = item->started;
    }
    try {
      if (item && !item->is_message()) {
        const Milliseconds stall = std::min(options_.stall, item->timeout / 3);
        if (std::chrono::steady_clock::now() - started >= stall) look_at_others(*item);
      }
      const Milliseconds pause = std::clamp(options_.stall / 4, Milliseconds(10), Milliseconds(500));
      const Error first = decode(watched_->get(kFailure, pause));
      end_here(first);
      return;
    } catch (const Error& error) {
      if (error.code() == ErrorCode::kDeadlineExceeded) continue;
      if (error.code() != ErrorCode::kCancelled) {
        end_here(Error(error.code(), concat("group ", name_, ", rank ", rank_, ": ", error.what())));
      }
      return;
    }
  }
}

// Ranks that run different operations under the same number would wait for each other forever.
void ProcessGroup::look_at_others(Item& item) {
  if (!item.is_told) {
    watched_->set(at_key(rank_), item.text());
    item.is_told = true;
    log(LogLevel::kWarning, "an operation waits for other ranks",
        {{"group", name_}, {"rank", rank_}, {"operation", item.name()}});
  }
  std::string text;
  bool is_different = false;
  for (int rank = 0; rank < size_; ++rank) {
    if (rank != rank_ && !watched_->check(at_key(rank))) continue;
    const std::string at = rank == rank_ ? item.text() : watched_->get(at_key(rank), kStoreAnswer);
    if (number_of(at) != item.number) continue;
    is_different |= at != item.text();
    const size_t space = at.find(' '), comma = std::min(at.find(','), at.size());
    text += concat(text.empty() ? " rank " : "; rank ", rank, " runs ", at.substr(space + 1, comma - space - 1),
                   " number ", item.number, at.substr(comma));
  }
  if (is_different) {
    end_with(
        Error(ErrorCode::kInvalidArgument, concat("Detected mismatch between operations of group ", name_, ":", text)));
  }
}

std::string ProcessGroup::ranks_that_have_not_come(const Item& item) {
  if (item.is_message()) return "";
  std::string absent, slow;
  try {
    store_->set(at_key(rank_), item.text());
    // Ranks that have waited as long as this one report at about the same time.
    std::this_thread::sleep_for(std::min(Milliseconds(100), item.timeout / 10));
    for (int rank = 0; rank < size_; ++rank) {
      if (rank == rank_) continue;
      const bool is_told = store_->check(at_key(rank));
      const std::string at = is_told ? store_->get(at_key(rank), kStoreAnswer) : "";
      if (is_told && number_of(at) >= item.number) continue;
      absent += concat(absent.empty() ? " " : ", ", rank);
    }
  } catch (const Error&) {
    return "";
  }
  return absent.empty() ? "" : concat("; not there: rank", absent.find(',') == std::string::npos ? "" : "s", absent);
}

}  // namespace tensord::distributed
