#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/json.hpp"
#include "base/record_json.hpp"
#include "runner/local/stage.hpp"

#include <sys/socket.h>
#include <cerrno>

namespace mlenv {
namespace {

using nlohmann::json;

json from_bytes(std::string_view bytes) {
  json value = json::from_cbor(bytes.begin(), bytes.end(), true, false);
  if (!value.is_object()) {
    throw Error(Kind::internal, "stage-message",
                "the two halves of `mlenv run` misunderstood each other");
  }
  return value;
}

json paths(const std::vector<fs::path>& list) {
  json result = json::array();
  for (const fs::path& path : list) result.push_back(path.native());
  return result;
}

json written_usage(const std::optional<JobUsage>& usage) {
  if (!usage) return {};
  return {usage->user_seconds, usage->system_seconds, usage->read_blocks, usage->written_blocks,
          usage->largest_kilobytes};
}

std::optional<JobUsage> usage_of(const json& value) {
  if (value.is_null()) return std::nullopt;
  return JobUsage{value.at(0), value.at(1), value.at(2), value.at(3), value.at(4)};
}

json written_life(const RunLife& life) {
  return {{"timeout_ms", life.timeout ? json(life.timeout->count()) : json()},
          {"stop_signal", life.stop_signal},
          {"grace_ms", life.grace.count()},
          {"restart", life.restart.text}};
}

RunLife life_of(const json& value) {
  RunLife life;
  if (const json& timeout = value.at("timeout_ms"); !timeout.is_null()) {
    life.timeout = std::chrono::milliseconds(timeout.get<std::int64_t>());
  }
  life.stop_signal = value.at("stop_signal");
  life.grace = std::chrono::milliseconds(value.at("grace_ms").get<std::int64_t>());
  life.restart = RestartPolicy::parse(value.at("restart").get<std::string>()).value();
  return life;
}

}  // namespace

std::string render_request(const LocalRun& run) {
  json mounts = json::array();
  for (const Mount& mount : run.mounts) {
    mounts.push_back({mount.source.native(), mount.target, mount.read_only});
  }
  json fresh = json::array();
  for (const FreshPath& one : run.fresh) fresh.push_back({one.mount, one.within, one.existed});
  return cbor_bytes({{"architecture", run.config.architecture},
                     {"image_env", run.config.env},
                     {"entrypoint", run.config.entrypoint},
                     {"command", run.config.command},
                     {"image_workdir", run.config.workdir},
                     {"user", run.config.user},
                     {"trees", paths(run.trees)},
                     {"mounts", std::move(mounts)},
                     {"devices", RecordWriter::written(run.devices)},
                     {"options", RecordWriter::written(run.options)},
                     {"env", run.env},
                     {"workdir", run.workdir},
                     {"argv", run.argv},
                     {"project", run.project ? json(run.project->native()) : json()},
                     {"settled", paths(run.settled)},
                     {"scratch", run.scratch.native()},
                     {"terminal", run.terminal},
                     {"runtime", run.runtime},
                     {"engine", RecordWriter::written(run.engine)},
                     {"vm", RecordWriter::written(run.vm)},
                     {"overlay", static_cast<int>(run.overlay)},
                     {"layer", run.layer ? json(run.layer->folder.native()) : json()},
                     {"layer_to_write", run.layer && run.layer->to_write},
                     {"holds_layer", run.fds.layer >= 0},
                     {"life", written_life(run.life)},
                     {"controlled", run.fds.control >= 0},
                     {"own_streams", run.fds.out >= 0},
                     {"throwaway_mounts", run.throwaway_mounts},
                     {"first_libraries", run.first_libraries},
                     {"fresh", std::move(fresh)}});
}

LocalRun parse_request(std::string_view bytes) {
  const json value = from_bytes(bytes);
  LocalRun run;
  run.config.architecture = value.at("architecture");
  run.config.env = value.at("image_env").get<std::vector<std::string>>();
  run.config.entrypoint = value.at("entrypoint").get<std::vector<std::string>>();
  run.config.command = value.at("command").get<std::vector<std::string>>();
  run.config.workdir = value.at("image_workdir");
  run.config.user = value.at("user");
  for (const json& tree : value.at("trees")) run.trees.emplace_back(tree.get<std::string>());
  for (const json& mount : value.at("mounts")) {
    run.mounts.push_back({mount.at(0).get<std::string>(), mount.at(1), mount.at(2)});
  }
  const RecordReader reader("the request", {"mlenv.stage/1", "a request", ""});
  reader.read(value.at("devices"), "devices", run.devices);
  reader.read(value.at("options"), "options", run.options);
  reader.read(value.at("engine"), "engine", run.engine);
  reader.read(value.at("vm"), "vm", run.vm);
  run.env = value.at("env").get<std::vector<std::string>>();
  run.workdir = value.at("workdir");
  run.argv = value.at("argv").get<std::vector<std::string>>();
  if (!value.at("project").is_null()) run.project = value.at("project").get<std::string>();
  for (const json& one : value.at("settled")) run.settled.emplace_back(one.get<std::string>());
  run.scratch = value.at("scratch").get<std::string>();
  run.terminal = value.at("terminal");
  run.runtime = value.at("runtime");
  run.overlay = static_cast<OverlayMethod>(value.at("overlay").get<int>());
  run.throwaway_mounts = value.at("throwaway_mounts");
  run.first_libraries = value.at("first_libraries");
  for (const json& one : value.at("fresh")) {
    run.fresh.push_back({one.at(0), one.at(1).get<std::string>(), one.at(2)});
  }
  if (const json& layer = value.at("layer"); !layer.is_null()) {
    run.layer = LayerUse{layer.get<std::string>(), value.at("layer_to_write")};
  }
  run.life = life_of(value.at("life"));
  if (value.at("controlled")) run.fds.control = kStageControl;
  if (value.at("holds_layer")) run.fds.layer = kStageLayer;
  if (value.at("own_streams")) {
    run.fds.out = kStageOut;
    run.fds.err = kStageErr;
  }
  return run;
}

std::string render_outcome(const Exit& exit) { return render_outcome(RunOutcome{exit}); }

std::string render_outcome(const RunOutcome& run, const std::string& complaint) {
  return cbor_bytes({{"code", run.exit.code},
                     {"signalled", run.exit.signalled},
                     {"ended_by", static_cast<int>(run.ended_by)},
                     {"attempts", run.attempts},
                     {"out_of_memory", run.out_of_memory},
                     {"usage", written_usage(run.usage)},
                     {"vm", RecordWriter::written(run.vm)},
                     {"complaint", complaint}});
}

std::string render_outcome(const Error& error) {
  return cbor_bytes({{"kind", static_cast<int>(error.kind())},
                     {"error", error.code()},
                     {"frames", error.frames()},
                     {"hint", error.hint()}});
}

Exit parse_outcome(std::string_view bytes) { return parse_stage_outcome(bytes).run.exit; }

StageOutcome parse_stage_outcome(std::string_view bytes) {
  const json value = from_bytes(bytes);
  if (!value.contains("error")) {
    StageOutcome outcome{{{value.at("code"), value.at("signalled")},
                          static_cast<EndedBy>(value.at("ended_by").get<int>()),
                          value.at("attempts"),
                          value.at("out_of_memory"),
                          usage_of(value.at("usage"))},
                         value.at("complaint")};
    const RecordReader reader("the outcome", {"mlenv.stage/1", "an outcome", ""});
    reader.read(value.at("vm"), "vm", outcome.run.vm);
    return outcome;
  }
  const auto frames = value.at("frames").get<std::vector<std::string>>();
  Error error{static_cast<Kind>(value.at("kind").get<int>()), value.at("error"), frames.at(0)};
  for (std::size_t i = 1; i < frames.size(); ++i) error.because(frames[i]);
  if (const std::string hint = value.at("hint"); !hint.empty()) error.hint(hint);
  throw Error{std::move(error)};
}

std::string render_event(const std::optional<AttemptEnd>& attempt) {
  if (!attempt) return cbor_bytes({{"event", "started"}});
  return cbor_bytes({{"event", "attempt"},
                     {"number", attempt->number},
                     {"code", attempt->exit.code},
                     {"signalled", attempt->exit.signalled},
                     {"took_ms", attempt->took.count()}});
}

bool take_event(std::string_view bytes, const RunEvents& events) {
  const json value = from_bytes(bytes);
  if (!value.contains("event")) return false;
  if (value.at("event") == "started") {
    if (events.started) events.started();
  } else if (events.attempt_ended) {
    events.attempt_ended({value.at("number"),
                          {value.at("code"), value.at("signalled")},
                          std::chrono::milliseconds(value.at("took_ms").get<std::int64_t>())});
  }
  return true;
}

std::string framed(std::string_view bytes) {
  constexpr unsigned kByte = 8;
  std::string text;
  for (unsigned i = 0; i < 4; ++i) text += static_cast<char>((bytes.size() >> (i * kByte)) & 0xffU);
  return text.append(bytes);
}

std::optional<std::string> take_frame(std::string& bytes) {
  constexpr std::size_t kHead = 4;
  constexpr unsigned kByte = 8;
  if (bytes.size() < kHead) return std::nullopt;
  std::size_t size = 0;
  for (unsigned i = 0; i < kHead; ++i) {
    size |= static_cast<std::size_t>(static_cast<unsigned char>(bytes[i])) << (i * kByte);
  }
  if (bytes.size() - kHead < size) return std::nullopt;
  std::string frame = bytes.substr(kHead, size);
  bytes.erase(0, kHead + size);
  return frame;
}

void send_all(int socket, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(socket, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  ::shutdown(socket, SHUT_WR);
}

}  // namespace mlenv
