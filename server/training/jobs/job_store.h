#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "server/training/jobs/job_status.h"

namespace tensord::server {

// The jobs on disk, a folder each:
//   <folder>/format.json                     {"format": 1}: the number of this layout; without it 1
//   <folder>/jobs/<id>/job.json              spec and status, replaced in one step
//   <folder>/jobs/<id>/base.pt               the model it starts from; base.onnx, base.pt2; base.py: source, with its
//                                            weights beside it
//   <folder>/jobs/<id>/inputs.json           see job_origin.h
//   <folder>/jobs/<id>/checkpoint-<step>/    see checkpoint.h
//   <folder>/jobs/<id>/data/                 uploaded data, under the names in its spec
//   <folder>/uploads/<id>                    of clients without a token
//   <folder>/uploads/<owner>/<id>            of those with one
//   <folder>/downloads/                      emptied at each start
//   <folder>/unreadable/<id>/                jobs that were set aside
// Thread-safe, but one thread at a time may save the same job.
class JobStore {
 public:
  // Creates the folders. Throws Error if that fails, another daemon uses them, or a newer one wrote them: nothing is
  // changed then.
  explicit JobStore(const std::string& folder);
  ~JobStore();
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;

  // The stored jobs, oldest first. Unreadable ones are moved to <folder>/unreadable.
  std::vector<JobStatus> load() const;
  // Creates the folder of a new job; its id starts with `name`. Returns the id.
  std::string make_job(const std::string& name) const;
  void save(const JobStatus& status) const;
  void remove(const std::string& id) const;
  // Removes job.json, so that the next start does not find the job and removes its folder.
  void forget(const std::string& id) const;
  // Moves an unusable job to <folder>/unreadable and logs the reason. Does not throw.
  void set_aside(const std::string& id, const std::string& reason) const;

  std::filesystem::path job_folder(const std::string& id) const { return jobs_ / id; }
  std::filesystem::path base_archive(const std::string& id) const { return base_archive_in(jobs_ / id); }
  static std::filesystem::path base_archive_in(const std::filesystem::path& folder);
  // Keeps the file's extension, which identifies some formats.
  std::filesystem::path new_base_archive(const std::string& id, const std::filesystem::path& file_name) const;

  // `owner`: a plain name, or empty. An owner's uploads do not exist for others.
  // Creates an empty file for an upload. Returns its id, which ends with `ending` (".csv").
  std::string make_upload(const std::string& owner, const std::string& ending = {}) const;
  std::filesystem::path upload_file(const std::string& owner, const std::string& upload_id) const {
    return uploads_ / owner / upload_id;
  }
  // Removes the owner's oldest uploads until there is room for one more of that many bytes.
  void make_room_for_upload(const std::string& owner, size_t max_files, uint64_t max_bytes, uint64_t bytes) const;
  // Removes uploads that were not written to for that long.
  void remove_uploads(int64_t older_than_seconds) const;

  // Makes an empty folder for files that a client fetches. What is left of earlier ones is removed at the next start.
  std::filesystem::path make_download() const;

 private:
  std::filesystem::path jobs_, uploads_, unreadable_, downloads_;
  int lock_ = -1;
};

// Including parents. Throws as fail_file.
void make_folder(const std::filesystem::path& folder);

// Hard-links `to` to `from`, or copies it if that is not possible. Throws Error.
void link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tensord::server
