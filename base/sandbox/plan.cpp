#include "base/sandbox/plan.hpp"

#include <nlohmann/json.hpp>

namespace mlenv::sandbox {
namespace {

using nlohmann::json;

std::string to_bytes(const json& value) {
  std::string bytes;
  json::to_cbor(value, bytes);
  return bytes;
}

json from_bytes(std::string_view bytes) {
  try {
    return json::from_cbor(bytes);
  } catch (const json::exception& error) {
    throw Error{Kind::internal, "internal",
                "the two halves of the sandbox do not understand each "
                "other"}
        .because(error.what());
  }
}

json to_json(const Owners& owners) {
  json list = json::array();
  for (const auto& [path, owner] : owners) list.push_back({path, owner.uid, owner.gid});
  return list;
}

Owners owners_of(const json& list) {
  Owners owners;
  for (const json& item : list) {
    owners.emplace(item.at(0).get<std::string>(),
                   Owner{item.at(1).get<std::uint32_t>(), item.at(2).get<std::uint32_t>()});
  }
  return owners;
}

json to_json(const std::optional<Overlay>& overlay) {
  if (!overlay) return nullptr;
  json lowers = json::array();
  for (const fs::path& lower : overlay->lowers) lowers.push_back(lower.string());
  return {{"lowers", lowers},
          {"folder", overlay->folder.string()},
          {"user_xattr", overlay->user_xattr},
          {"method", static_cast<int>(overlay->method)}};
}

std::optional<Overlay> overlay_of(const json& value) {
  if (value.is_null()) return std::nullopt;
  Overlay overlay;
  for (const json& lower : value.at("lowers")) {
    overlay.lowers.emplace_back(lower.get<std::string>());
  }
  overlay.folder = value.at("folder").get<std::string>();
  overlay.user_xattr = value.at("user_xattr").get<bool>();
  overlay.method = static_cast<OverlayMethod>(value.at("method").get<int>());
  return overlay;
}

}  // namespace

std::string encode(const Plan& plan) {
  const SandboxCommand& command = plan.command;
  json mounts = json::array();
  for (const SandboxMount& mount : command.mounts) {
    mounts.push_back({mount.source.string(), mount.target, mount.read_only});
  }
  return to_bytes({{"root", command.root.string()},
                   {"read_only_root", command.read_only_root},
                   {"argv", command.argv},
                   {"env", command.env},
                   {"folder", command.folder},
                   {"mounts", mounts},
                   {"hostname", command.hostname},
                   {"overlay", to_json(command.overlay)},
                   {"network", command.network},
                   {"secrets", command.secrets},
                   {"recorded", plan.recorded},
                   {"initial", to_json(plan.initial)},
                   {"way", static_cast<int>(plan.way)},
                   {"caller", plan.caller}});
}

Plan decode_plan(std::string_view bytes) {
  const json value = from_bytes(bytes);
  Plan plan;
  plan.command.root = value.at("root").get<std::string>();
  plan.command.read_only_root = value.at("read_only_root").get<bool>();
  plan.command.argv = value.at("argv").get<std::vector<std::string>>();
  plan.command.env = value.at("env").get<std::vector<std::string>>();
  plan.command.folder = value.at("folder").get<std::string>();
  for (const json& mount : value.at("mounts")) {
    plan.command.mounts.push_back(
        {mount.at(0).get<std::string>(), mount.at(1).get<std::string>(), mount.at(2).get<bool>()});
  }
  plan.command.hostname = value.at("hostname").get<std::string>();
  plan.command.overlay = overlay_of(value.at("overlay"));
  plan.command.network = value.at("network").get<bool>();
  plan.command.secrets = value.at("secrets").get<std::map<std::string, std::string>>();
  plan.recorded = value.at("recorded").get<bool>();
  plan.initial = owners_of(value.at("initial"));
  plan.way = static_cast<Way>(value.at("way").get<int>());
  plan.caller = value.at("caller").get<int>();
  return plan;
}

std::string encode(const Result& result) {
  json exit;
  if (result.exit) exit = {result.exit->code, result.exit->signalled};
  return to_bytes({{"exit", exit},
                   {"owners", to_json(result.owners)},
                   {"capabilities", result.capabilities},
                   {"trouble", result.trouble},
                   {"too_many", result.too_many}});
}

Result decode_result(std::string_view bytes) {
  const json value = from_bytes(bytes);
  if (value.at("too_many").get<bool>()) {
    throw failure("too-many-processes", "the program made processes without end and was ended")
        .because(
            fmt::format("more than {} of them ran at once, or for seconds as many as there may be",
                        kMostProcesses));
  }
  Result result;
  if (const json& exit = value.at("exit"); !exit.is_null()) {
    result.exit = Exit{exit.at(0).get<int>(), exit.at(1).get<bool>()};
  }
  result.owners = owners_of(value.at("owners"));
  result.capabilities = value.at("capabilities").get<FileCapabilities>();
  result.trouble = value.at("trouble").get<std::string>();
  return result;
}

std::string encode(const Error& error) {
  return to_bytes({{"code", error.code()}, {"frames", error.frames()}, {"hint", error.hint()}});
}

Error decode_error(std::string_view bytes) {
  const json value = from_bytes(bytes);
  const auto frames = value.at("frames").get<std::vector<std::string>>();
  Error error{Kind::failed, value.at("code").get<std::string>(), frames.at(0)};
  for (std::size_t i = 1; i < frames.size(); ++i) error.because(frames[i]);
  if (const auto hint = value.at("hint").get<std::string>(); !hint.empty()) error.hint(hint);
  return error;
}

}  // namespace mlenv::sandbox
