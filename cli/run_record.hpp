#pragma once
// The record of a run as `mlenv run` writes it, and as text.
#include <optional>
#include <string>
#include <vector>

#include "images/oci.hpp"
#include "runner/local/run.hpp"
#include "runner/record/run_record.hpp"

namespace mlenv::cli {

/// What a run is that its LocalRun does not say.
struct RunBackground {
  std::string image_name;        ///< as the person called it
  std::vector<CdiName> devices;  ///< GPUs and others
  bool checked = true;           ///< the verdict was asked
  std::optional<RecordedLayer> layer{};
};
/// What a run is, secrets masked.
RunStart run_start(const LocalRun& run, const Image& image, const RunBackground& background);

RecordedMount recorded_mount(const Mount& mount);

/// Sources of the run, whose record has none but them, are where they are found now, by paths
/// without links: so they are mounted (`LocalRun::settled`), and recorded.
void settle_sources(LocalRun& run, RunStart& start);
/// Notes in the record of a run where its settled sources lie.
void record_settled(const LocalRun& run, RunStart& start);

/// `/mnt/scratch/bert at /checkpoints, storage scratch`
std::string mount_text(const RecordedMount& mount);

/// A line for the list: what is wide last.
struct RunLine {
  std::string id;
  std::string name;     ///< empty: none
  std::string started;  ///< by this machine's clock and time zone
  std::string state;    ///< `done`, `failed (3)`, `killed (SIGTERM)`
  std::string took;     ///< `12.3 s`, `2 h 5 min`; of a running one until now
  std::string image;
  std::string command;
  std::string values{};  ///< of a variation: `lr=0.1 seed=3`
};
RunLine run_line(const RunRecord& record);

/// `2026-03-01 13:00:00`, by this machine's clock and time zone; what is no time, as it is.
std::string local_time(const std::string& utc);
/// `12.3 s`, `2 h 5 min`
std::string duration_text(double seconds);
/// What a run might use: processors that mlenv can run on, and its control group's quota.
std::optional<double> usable_processors(const CpuFacts& cpu);

/// All of it, a line a fact. `kept_bytes`: of the layer that it wrote to; nullopt: unknown.
std::vector<std::string> run_text(const RunRecord& record, std::optional<std::uint64_t> kept_bytes);

}  // namespace mlenv::cli
