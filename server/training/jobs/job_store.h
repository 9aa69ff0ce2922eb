#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "server/training/jobs/job_status.h"

namespace tensord::server {

// The jobs on disk, a folder each:
//   <folder>/jobs/<id>/job.json              spec and status, replaced in one step
//   <folder>/jobs/<id>/base.pt               the model it starts from; base.onnx, base.pt2; base.py: source, with its
//                                            weights beside it
//   <folder>/jobs/<id>/inputs.json           see job_origin.h
//   <folder>/jobs/<id>/checkpoint-<step>/    see checkpoint.h
//   <folder>/uploads/<id>
//   <folder>/unreadable/<id>/                jobs that were set aside
// Thread-safe, but one thread at a time may save the same job.
class JobStore {
 public:
  // Makes the folders. Throws Error when that fails, or another daemon uses them.
  explicit JobStore(const std::string& folder);
  ~JobStore();
  JobStore(const JobStore&) = delete;
  JobStore& operator=(const JobStore&) = delete;

  // What was saved, oldest first; what cannot be read is set aside.
  std::vector<JobStatus> load() const;
  // Makes the folder of a new job under an id that starts with `name`; gives back the id.
  std::string make_job(const std::string& name) const;
  void save(const JobStatus& status) const;
  void remove(const std::string& id) const;
  // Takes job.json away, so that the job is not found at the next start. The folder is swept up then.
  void forget(const std::string& id) const;
  // Moves a job that is of no use to <folder>/unreadable, so that it is out of the way and not lost, and logs why. Does
  // not throw.
  void set_aside(const std::string& id, const std::string& reason) const;

  std::filesystem::path job_folder(const std::string& id) const { return jobs_ / id; }
  std::filesystem::path base_archive(const std::string& id) const { return base_archive_in(jobs_ / id); }
  static std::filesystem::path base_archive_in(const std::filesystem::path& folder);
  // With the ending of a file's name, by which some formats are known.
  std::filesystem::path new_base_archive(const std::string& id, const std::filesystem::path& file_name) const;

  // An empty file for an upload, and its id.
  std::string make_upload() const;
  std::filesystem::path upload_file(const std::string& upload_id) const { return uploads_ / upload_id; }
  // Removes those that were written to first until one more, of so many bytes, has room among them.
  void make_room_for_upload(size_t max_files, uint64_t max_bytes, uint64_t bytes) const;
  // Removes uploads that nobody wrote to for so long.
  void remove_uploads(int64_t older_than_seconds) const;

 private:
  std::filesystem::path jobs_, uploads_, unreadable_;
  int lock_ = -1;
};

// With those above it. Throws as fail_file.
void make_folder(const std::filesystem::path& folder);

// Makes `to` the same file as `from`, or a copy where that is not possible. Throws Error.
void link_or_copy(const std::filesystem::path& from, const std::filesystem::path& to);

}  // namespace tensord::server
