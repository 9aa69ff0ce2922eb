#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "core/nn/data/dataset.h"
#include "server/training/jobs/file_fingerprint.h"
#include "server/training/jobs/job_spec.h"
#include "server/training/training_model.h"

// Folders and zip archives of labeled images as data of a job (core/files/image_files.h). They have the arrays
// `images` and `labels`. Errors start with the path of the folder or of the image. In a daemon without image decoders
// (TENSORD_IMAGES) open_image_data and check_image_data throw Error{kUnimplemented}.
namespace tensord::server {

// A folder, or a file that ends with .zip.
bool is_image_data(const std::string& path);

// Samples are decoded when they are asked for, one tensor for each array of the model. `is_for_training`: with the
// random changes that the job wants, drawn from the seed of the thread's generator and the sample's index. `within`:
// the folder that links must not leave. Throws Error.
std::unique_ptr<nn::Dataset> open_image_data(const std::string& path, const std::string& within, const JobSpec& spec,
                                             const TrainingModel& model, bool is_for_training);

// Opens the data and reads the headers of its images until some seconds have passed; the job finds what is wrong with
// the rest. Throws Error.
void check_image_data(const std::string& path, const std::string& within, const JobSpec& spec,
                      const TrainingModel& model);

// Of a folder: the sum of the sizes, and the SHA-256 of the lines that sha256sum prints of its images, in their order
// and with their names below the folder. `of_file` gives that of an image; nothing if interrupted, and then this
// returns nothing.
std::optional<FileFingerprint> fingerprint_of_images(
    const std::string& folder, const std::string& within,
    const std::function<std::optional<FileFingerprint>(const std::string& path)>& of_file);

// Creates the folder `to` with links to the folder's images, or copies of them. Throws Error.
void link_images(const std::string& folder, const std::string& within, const std::filesystem::path& to);

}  // namespace tensord::server
