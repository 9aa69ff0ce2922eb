#include "server/training/ranks/rank_task.h"

#include <nlohmann/json.hpp>

#include "core/base/error.h"
#include "server/training/jobs/job_json.h"

namespace tensord::server {

using Json = nlohmann::json;

std::string to_text(const RankTask& task) {
  return Json{{"job", to_json(task.job)},
              {"folder", task.folder},
              {"base_archive", task.base_archive},
              {"data_folder", task.data_folder},
              {"result", task.result},
              {"rank", task.rank},
              {"threads", task.threads},
              {"memory_bytes", task.memory_bytes},
              {"nice", task.nice},
              {"address", task.address},
              {"store_host", task.store_host},
              {"store_port", task.store_port},
              {"secret", task.secret},
              {"first_batch", task.first_batch}}
      .dump();
}

RankTask rank_task_from_text(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  check(json.is_object(), "the task of a rank is not a JSON object");
  RankTask task;
  try {
    task.job = job_status_from_json(json.at("job"));
    json.at("folder").get_to(task.folder);
    json.at("base_archive").get_to(task.base_archive);
    json.at("data_folder").get_to(task.data_folder);
    json.at("result").get_to(task.result);
    json.at("rank").get_to(task.rank);
    json.at("threads").get_to(task.threads);
    json.at("memory_bytes").get_to(task.memory_bytes);
    json.at("nice").get_to(task.nice);
    json.at("address").get_to(task.address);
    json.at("store_host").get_to(task.store_host);
    json.at("store_port").get_to(task.store_port);
    json.at("secret").get_to(task.secret);
    json.at("first_batch").get_to(task.first_batch);
  } catch (const Json::exception& error) {
    fail(ErrorCode::kInvalidArgument, "the task of a rank: ", error.what());
  }
  return task;
}

}  // namespace tensord::server
