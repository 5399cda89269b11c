#include "runner/job/job_progress.hpp"

#include <nlohmann/json.hpp>

#include "base/log.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

constexpr const char* kProgressFile = "progress";

}  // namespace

std::optional<JobProgress> read_progress(const fs::path& folder) {
  const std::optional<std::string> text = read_file_if_exists(folder / kProgressFile);
  if (!text) return std::nullopt;
  try {
    const json value = json::parse(*text);
    return JobProgress{value.at("attempts"), value.at("restarts"),
                       std::chrono::milliseconds(value.at("used_ms").get<std::int64_t>())};
  } catch (const json::exception& error) {
    log::debug("`{}` cannot be read: {}", (folder / kProgressFile).string(), error.what());
    return std::nullopt;
  }
}

void write_progress(const fs::path& folder, const JobProgress& progress) noexcept {
  try {
    const json value = {{"attempts", progress.attempts},
                        {"restarts", progress.restarts},
                        {"used_ms", progress.used.count()}};
    write_file(folder / kProgressFile, value.dump() + "\n", /*durable=*/false);
  } catch (const std::exception& error) {
    log::debug("how far the job has come is not written down: {}", error.what());
  }
}

void forget_progress(const fs::path& folder) noexcept {
  std::error_code ignored;
  fs::remove(folder / kProgressFile, ignored);
}

}  // namespace mlenv::job
