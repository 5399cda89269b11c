#include <nlohmann/json.hpp>

#include "base/bytes.hpp"
#include "base/record_json.hpp"
#include "runner/local/stage.hpp"

namespace mlenv {
namespace {

using Json = nlohmann::json;

std::string to_bytes(const Json& value) {
  const std::vector<std::uint8_t> cbor = Json::to_cbor(value);
  return {cbor.begin(), cbor.end()};
}

Json from_bytes(std::string_view bytes) {
  Json value = Json::from_cbor(bytes.begin(), bytes.end(), true, false);
  if (!value.is_object()) {
    throw Error(Kind::internal, "stage-message",
                "the two halves of `mlenv run` misunderstood each other");
  }
  return value;
}

Json paths(const std::vector<fs::path>& list) {
  Json result = Json::array();
  for (const fs::path& path : list) result.push_back(path.native());
  return result;
}

}  // namespace

std::string render_request(const LocalRun& run) {
  Json mounts = Json::array();
  for (const Mount& mount : run.mounts) {
    mounts.push_back({mount.source.native(), mount.target, mount.read_only});
  }
  Json fresh = Json::array();
  for (const FreshPath& one : run.fresh) fresh.push_back({one.mount, one.within, one.existed});
  return to_bytes({{"architecture", run.config.architecture},
                   {"image_env", run.config.env},
                   {"entrypoint", run.config.entrypoint},
                   {"command", run.config.command},
                   {"image_workdir", run.config.workdir},
                   {"user", run.config.user},
                   {"trees", paths(run.trees)},
                   {"mounts", std::move(mounts)},
                   {"devices", RecordWriter::written(run.devices)},
                   {"env", run.env},
                   {"workdir", run.workdir},
                   {"argv", run.argv},
                   {"project", run.project ? Json(run.project->native()) : Json()},
                   {"scratch", run.scratch.native()},
                   {"terminal", run.terminal},
                   {"runtime", run.runtime},
                   {"overlay", static_cast<int>(run.overlay)},
                   {"throwaway_mounts", run.throwaway_mounts},
                   {"fresh", std::move(fresh)}});
}

LocalRun parse_request(std::string_view bytes) {
  const Json value = from_bytes(bytes);
  LocalRun run;
  run.config.architecture = value.at("architecture");
  run.config.env = value.at("image_env").get<std::vector<std::string>>();
  run.config.entrypoint = value.at("entrypoint").get<std::vector<std::string>>();
  run.config.command = value.at("command").get<std::vector<std::string>>();
  run.config.workdir = value.at("image_workdir");
  run.config.user = value.at("user");
  for (const Json& tree : value.at("trees")) run.trees.emplace_back(tree.get<std::string>());
  for (const Json& mount : value.at("mounts")) {
    run.mounts.push_back({mount.at(0).get<std::string>(), mount.at(1), mount.at(2)});
  }
  RecordReader("the request", {"mlenv.stage/1", "a request", ""})
      .read(value.at("devices"), "devices", run.devices);
  run.env = value.at("env").get<std::vector<std::string>>();
  run.workdir = value.at("workdir");
  run.argv = value.at("argv").get<std::vector<std::string>>();
  if (!value.at("project").is_null()) run.project = value.at("project").get<std::string>();
  run.scratch = value.at("scratch").get<std::string>();
  run.terminal = value.at("terminal");
  run.runtime = value.at("runtime");
  run.overlay = static_cast<OverlayMethod>(value.at("overlay").get<int>());
  run.throwaway_mounts = value.at("throwaway_mounts");
  for (const Json& one : value.at("fresh")) {
    run.fresh.push_back({one.at(0), one.at(1).get<std::string>(), one.at(2)});
  }
  return run;
}

std::string render_outcome(const Exit& exit) {
  return to_bytes({{"code", exit.code}, {"signalled", exit.signalled}});
}

std::string render_outcome(const Error& error) {
  return to_bytes({{"kind", static_cast<int>(error.kind())},
                   {"error", error.code()},
                   {"frames", error.frames()},
                   {"hint", error.hint()}});
}

Exit parse_outcome(std::string_view bytes) {
  const Json value = from_bytes(bytes);
  if (!value.contains("error")) return {value.at("code"), value.at("signalled")};
  const auto frames = value.at("frames").get<std::vector<std::string>>();
  Error error{static_cast<Kind>(value.at("kind").get<int>()), value.at("error"), frames.at(0)};
  for (std::size_t i = 1; i < frames.size(); ++i) error.because(frames[i]);
  if (const std::string hint = value.at("hint"); !hint.empty()) error.hint(hint);
  throw Error{std::move(error)};
}

}  // namespace mlenv
