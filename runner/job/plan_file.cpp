#include "runner/job/plan_file.hpp"

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "base/json.hpp"
#include "base/record_json.hpp"
#include "runner/local/stage.hpp"

namespace mlenv::job {
namespace {

using nlohmann::json;

json written(const std::optional<Mount>& mount) {
  if (!mount) return {};
  return {mount->source.native(), mount->target, mount->read_only};
}

json written(const Job& job) {
  return {{"name", job.name},
          {"least", job.nodes.least},
          {"most", job.nodes.most},
          {"ranks_per_node", job.ranks_per_node},
          {"gpus_per_node", RecordWriter::written(job.gpus_per_node)},
          {"strategy", static_cast<int>(job.strategy)},
          {"framework", static_cast<int>(job.framework)},
          {"chief", job.roles.chief},
          {"servers", job.roles.servers},
          {"evaluator", job.roles.evaluator},
          {"async", job.roles.async},
          {"interface", job.interface},
          {"restarts", job.restarts},
          {"rescale_ms", job.rescale_interval.count()},
          {"deadline_ms", job.deadline ? json(job.deadline->count()) : json()},
          {"grace_ms", job.grace.count()},
          {"checkpoints", written(job.checkpoints)},
          {"preflight", job.preflight},
          {"stall_timeout_ms", job.stall_timeout ? json(job.stall_timeout->count()) : json()}};
}

template <class T>
std::optional<T> optional_of(const json& value) {
  if (value.is_null()) return std::nullopt;
  return value.get<T>();
}

Job job_in_plan(const json& value) {
  using std::chrono::milliseconds;
  Job job;
  job.name = value.at("name");
  job.nodes = {value.at("least"), value.at("most")};
  job.ranks_per_node = value.at("ranks_per_node");
  job.gpus_per_node = optional_of<std::uint64_t>(value.at("gpus_per_node"));
  job.strategy = static_cast<Strategy>(value.at("strategy").get<int>());
  job.framework = static_cast<Framework>(value.at("framework").get<int>());
  job.roles = {value.at("chief"), value.at("servers"), value.at("evaluator"), value.at("async")};
  job.interface = value.at("interface");
  job.restarts = value.at("restarts");
  job.rescale_interval = milliseconds(value.at("rescale_ms").get<std::int64_t>());
  if (const auto ms = optional_of<std::int64_t>(value.at("deadline_ms"))) {
    job.deadline = milliseconds(*ms);
  }
  if (const auto ms = optional_of<std::int64_t>(value.at("stall_timeout_ms"))) {
    job.stall_timeout = milliseconds(*ms);
  }
  job.preflight = value.at("preflight");
  job.grace = milliseconds(value.at("grace_ms").get<std::int64_t>());
  if (const json& one = value.at("checkpoints"); !one.is_null()) {
    job.checkpoints = Mount{one.at(0).get<std::string>(), one.at(1), one.at(2)};
  }
  return job;
}

json written(const std::vector<DataSet>& sets) {
  json all = json::array();
  for (const DataSet& one : sets) all.push_back(RecordWriter::written(one));
  return all;
}

std::vector<DataSet> data_of(const json& value) {
  std::vector<DataSet> sets;
  for (const json& one : value) {
    sets.push_back({one.at("name"), one.at("digest"), one.at("from"), one.at("to"), one.at("stage"),
                    one.at("list"), one.at("list_bytes"), one.at("bytes")});
  }
  return sets;
}

json written(const std::vector<StorageUse>& places) {
  json all = json::array();
  for (const StorageUse& one : places) all.push_back(RecordWriter::written(one));
  return all;
}

std::vector<StorageUse> storage_of(const json& value) {
  std::vector<StorageUse> places;
  for (const json& one : value) {
    places.push_back({one.at("name"), one.at("path"), one.at("writes")});
  }
  return places;
}

json to_binary(const std::string& bytes) {
  return json::binary(std::vector<std::uint8_t>(bytes.begin(), bytes.end()));
}

std::string from_binary(const json& value) {
  const auto& bytes = value.get_binary();
  return {bytes.begin(), bytes.end()};
}

}  // namespace

std::string render_plan_file(const PlanFile& file) {
  const DrivePlan& plan = file.plan;
  const json value = {
      {"version", file.version},
      {"engine", file.engine},
      {"store", file.store.native()},
      {"json", file.json},
      {"job", written(plan.job)},
      {"image", plan.image_digest},
      {"pull_from", {plan.pull_from.repository, plan.pull_from.plain_http, plan.pull_from.program}},
      {"gpus", plan.gpus},
      {"facts", plan.image_facts ? json(render_image_facts(*plan.image_facts)) : json()},
      {"code", RecordWriter::written(plan.code_digest)},
      {"data", written(plan.data)},
      {"storage", written(plan.storage)},
      {"run", to_binary(render_request(plan.run))},
      {"start", render_run_start(plan.start)},
      {"meeting_ms", plan.meeting.count()},
      {"beat_ms", plan.link.beat.count()},
      {"silence_ms", plan.link.silence.count()},
      {"most_log_bytes", plan.most_log_bytes},
  };
  return cbor_bytes(value);
}

PlanFile parse_plan_file(std::string_view bytes, std::string_view shown, std::string_view version) {
  using std::chrono::milliseconds;
  try {
    const json value = json::from_cbor(bytes.begin(), bytes.end());
    PlanFile file;
    file.version = value.at("version");
    if (file.version != version) {
      throw usage_error("bad-job", "`{}` was written by mlenv {}, and this is {}", shown,
                        file.version, version)
          .hint("submit the job again");
    }
    file.engine = value.at("engine");
    file.store = value.at("store").get<std::string>();
    file.json = value.at("json");
    DrivePlan& plan = file.plan;
    plan.job = job_in_plan(value.at("job"));
    plan.image_digest = value.at("image");
    const json& from = value.at("pull_from");
    plan.pull_from = {from.at(0), from.at(1), from.at(2)};
    plan.gpus = value.at("gpus");
    if (const auto facts = optional_of<std::string>(value.at("facts"))) {
      plan.image_facts = read_image_facts(*facts, shown);
    }
    plan.code_digest = optional_of<std::string>(value.at("code"));
    plan.data = data_of(value.at("data"));
    plan.storage = storage_of(value.at("storage"));
    plan.run = parse_request(from_binary(value.at("run")));
    plan.start = parse_run_start(value.at("start").get<std::string>(), shown);
    plan.meeting = milliseconds(value.at("meeting_ms").get<std::int64_t>());
    plan.link.beat = milliseconds(value.at("beat_ms").get<std::int64_t>());
    plan.link.silence = milliseconds(value.at("silence_ms").get<std::int64_t>());
    plan.most_log_bytes = value.at("most_log_bytes");
    return file;
  } catch (const json::exception& error) {
    throw usage_error("bad-job", "`{}` is no job", shown).because(error.what());
  }
}

}  // namespace mlenv::job
