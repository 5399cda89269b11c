#include "cli/host_memory.hpp"

#include "base/error.hpp"
#include "base/log.hpp"
#include "base/process.hpp"
#include "cli/settings.hpp"
#include "runner/cdi/host_state.hpp"
#include "runner/facts/probe.hpp"

namespace mlenv::cli {
namespace {

constexpr std::string_view kHostsFolder = "hosts";

Facts probed(bool with_gpus) {
  const FactSources from =
      host_sources(fs::absolute(store_folder()), fs::absolute(temporary_root()));
  Facts facts;
  facts.system = probe_system(from);
  facts.cpu = probe_cpu(from);
  if (with_gpus) probe_nvidia(from, facts);
  return facts;
}

std::string name_now() {
  const std::string state = file_stamp(own_executable()) + nvidia_state();
  return Digest::of("mlenv.run-host/1\n" + state).hex() + ".json";
}

}  // namespace

std::optional<OwnFolder> cache_of(std::string_view name) {
  try {
    return OwnFolder{cache_folder() / name};
  } catch (const Error& error) {
    log::debug("nothing is remembered: {}", error.what());
    return std::nullopt;
  }
}

Facts KnownHost::fresh() const {
  Facts facts = probed(with_gpus_);
  if (!with_gpus_) return facts;
  if (const auto folder = cache_of(kHostsFolder)) folder->write(name_now(), render_facts(facts));
  return facts;
}

std::optional<Facts> KnownHost::remembered() const {
  const auto folder = with_gpus_ ? cache_of(kHostsFolder) : std::nullopt;
  const std::string name = folder ? name_now() : std::string();
  const auto text = folder ? folder->read(name) : std::nullopt;
  try {
    if (text) return read_facts(*text, name);
  } catch (const Error& error) {
    log::debug("remembered facts are not read: {}", error.what());
  }
  return std::nullopt;
}

SplitGpus split_gpus() {
  const KnownHost host{true};
  auto remembered = host.remembered();
  Facts facts = remembered ? *std::move(remembered) : host.fresh();
  return {std::move(facts.gpus), std::move(facts.mig_devices)};
}

}  // namespace mlenv::cli
