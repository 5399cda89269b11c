#include "runner/job/variations.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/record_json.hpp"
#include "runner/matrix/placeholders.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

constexpr RecordKind kVariation = {"mlenv.job-variation/1", "variation of a job", ""};

/// Words need not be UTF-8.
json as_binary(const std::vector<std::string>& words) {
  json all = json::array();
  for (const std::string& word : words) {
    all.push_back(json::binary(std::vector<std::uint8_t>(word.begin(), word.end())));
  }
  return all;
}

std::vector<std::string> binary_words(const json& value) {
  std::vector<std::string> words;
  for (const json& one : value) {
    const auto& bytes = one.get_binary();
    words.emplace_back(bytes.begin(), bytes.end());
  }
  return words;
}

std::string numbered(const std::string& name, const JobVariation& variation) {
  return name.empty() ? name : fmt::format("{}-{}", name, variation.recorded.number);
}

void record_values(RunStart& start, const JobVariation& variation) {
  const RecordedVariation& recorded = variation.recorded;
  start.argv = variation.recorded_argv;
  start.env.insert(start.env.end(), recorded.values.begin(), recorded.values.end());
  start.mounts.push_back({recorded.folder, std::string(matrix::kOutputTarget), false});
}

}  // namespace

DrivePlan plan_of(DrivePlan shared, const JobVariation& variation) {
  LocalRun& run = shared.run;
  run.argv = variation.argv;
  run.env.insert(run.env.end(), variation.env.begin(), variation.env.end());
  run.mounts.push_back({variation.recorded.folder, std::string(matrix::kOutputTarget), false});
  shared.job.name = numbered(shared.job.name, variation);
  record_values(shared.start, variation);
  return shared;
}

RunStart variation_start(RunStart start, const JobVariation& variation) {
  if (start.name) start.name = numbered(*start.name, variation);
  record_values(start, variation);
  start.variation = variation.recorded;
  return start;
}

std::string render_variations(const std::vector<JobVariation>& variations) {
  json all = json::array();
  for (const JobVariation& one : variations) {
    all.push_back({{"number", one.recorded.number},
                   {"recorded", RecordWriter::written(one.recorded)},
                   {"argv", as_binary(one.argv)},
                   {"recorded_argv", as_binary(one.recorded_argv)},
                   {"env", as_binary(one.env)}});
  }
  return cbor_bytes(all);
}

JobVariation parse_variation(std::string_view bytes, std::uint64_t number, std::string_view shown) {
  try {
    const json all = json::from_cbor(bytes.begin(), bytes.end());
    for (const json& value : all) {
      if (value.at("number") != number) continue;
      JobVariation one;
      RecordReader(shown, kVariation).read(value.at("recorded"), "recorded", one.recorded);
      one.argv = binary_words(value.at("argv"));
      one.recorded_argv = binary_words(value.at("recorded_argv"));
      one.env = binary_words(value.at("env"));
      return one;
    }
  } catch (const json::exception& error) {
    throw usage_error("bad-job", "`{}` holds no variations of a job", shown).because(error.what());
  }
  throw usage_error("bad-job", "`{}` holds no variation {}", shown, number);
}

}  // namespace mlenv::job
