#include "runner/job/variations.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/record_json.hpp"
#include "runner/matrix/placeholders.hpp"

namespace mlenv::job {
namespace {

using Json = nlohmann::json;

constexpr RecordKind kVariation = {"mlenv.job-variation/1", "variation of a job", ""};

/// Words need not be UTF-8.
Json binary(const std::vector<std::string>& words) {
  Json all = Json::array();
  for (const std::string& word : words) {
    all.push_back(Json::binary(std::vector<std::uint8_t>(word.begin(), word.end())));
  }
  return all;
}

std::vector<std::string> words_of(const Json& value) {
  std::vector<std::string> words;
  for (const Json& one : value) {
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
  Json all = Json::array();
  for (const JobVariation& one : variations) {
    all.push_back({{"number", one.recorded.number},
                   {"recorded", RecordWriter::written(one.recorded)},
                   {"argv", binary(one.argv)},
                   {"recorded_argv", binary(one.recorded_argv)},
                   {"env", binary(one.env)}});
  }
  const std::vector<std::uint8_t> cbor = Json::to_cbor(all);
  return {cbor.begin(), cbor.end()};
}

JobVariation parse_variation(std::string_view bytes, std::uint64_t number, std::string_view shown) {
  try {
    const Json all = Json::from_cbor(bytes.begin(), bytes.end());
    for (const Json& value : all) {
      if (value.at("number") != number) continue;
      JobVariation one;
      RecordReader(shown, kVariation).read(value.at("recorded"), "recorded", one.recorded);
      one.argv = words_of(value.at("argv"));
      one.recorded_argv = words_of(value.at("recorded_argv"));
      one.env = words_of(value.at("env"));
      return one;
    }
  } catch (const Json::exception& error) {
    throw usage_error("bad-job", "`{}` holds no variations of a job", shown).because(error.what());
  }
  throw usage_error("bad-job", "`{}` holds no variation {}", shown, number);
}

}  // namespace mlenv::job
