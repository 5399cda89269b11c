#pragma once
// A run whose container docker or podman makes. The engine starts the keeper in it and nothing
// else; from then on this process talks to the keeper alone, so that streams, signals, terminals,
// statuses and restarts are as with the built-in runtime.
#include "base/error.hpp"
#include "base/process.hpp"
#include "runner/engine/engine_command.hpp"
#include "runner/engine/keeper_client.hpp"
#include "runner/engine/known_hooks.hpp"
#include "runner/local/prepared_run.hpp"
#include "runner/local/run.hpp"
#include "runner/vm/guest_wait.hpp"

namespace mlenv {

/// A container with its keeper; its end removes the container.
class KeptContainer {
 public:
  /// A signal came that ends programs, before there was a container: no error.
  struct NotStarted {
    int signal = 0;
  };
  /// Runs it and waits for its keeper, for the one whom `watch` says. Throws `run-failed`,
  /// `bad-mount`, `port-taken`, `no-network`; NotStarted.
  KeptContainer(const ContainerEngine& engine, const EngineContainer& container,
                const GuestWatch& watch);
  KeptContainer(const KeptContainer&) = delete;
  KeptContainer& operator=(const KeptContainer&) = delete;
  ~KeptContainer();
  Keeper& keeper() { return keeper_; }
  /// It does not end by itself: the engine is to remove it at once, and nobody talks to it any
  /// more.
  void abandon();
  /// The engine's own process of it, which ends with it, or with the engine's daemon.
  pid_t client() const { return client_->pid(); }
  /// The container's root.
  const Fd& root() const { return root_; }

 private:
  void wait_for_keeper(const Fd& listener, const GuestWatch& watch);
  Error not_started() const;
  const ContainerEngine& engine_;
  const EngineContainer& container_;
  fs::path words_;  ///< what the engine says
  std::optional<Child> client_;
  bool is_abandoned_ = false;
  Keeper keeper_;
  Fd root_;
};

class EngineRun final : public PreparedRun {
 public:
  /// Throws as `run_local`.
  EngineRun(const LocalRun& run, int socket, int signals);
  EngineRun(const EngineRun&) = delete;
  EngineRun& operator=(const EngineRun&) = delete;
  ~EngineRun() override;
  const std::optional<CannotRun>& refusal() const override { return refusal_; }
  Attempt run(JobWatch& watch, const std::function<void()>& started) override;
  std::optional<JobUsage> usage() const override { return usage_; }

 private:
  void make_folders_of_run();
  void fill_container();
  std::vector<Mount> own_mounts();
  void start(const GuestWatch& watch);
  void take_over_layers() const;
  void look(const GuestWatch& watch);
  Bundle begin_bundle(const ImageRoot& image);
  /// `library_folders`: that LD_LIBRARY_PATH gets.
  void prepare(const ImageRoot& image, const std::vector<std::string>& library_folders);
  KeptProcess job() const;
  std::uint64_t memory_kills_so_far() const;

  const LocalRun& run_;
  EngineContainer container_;
  std::vector<std::uint32_t> device_groups_;
  HookWork hook_work_;
  std::optional<KeptContainer> kept_;
  Bundle bundle_;
  std::optional<CannotRun> refusal_;
  std::optional<JobUsage> usage_;
  bool again_ = false;
  JobEnd last_end_;
};

}  // namespace mlenv
