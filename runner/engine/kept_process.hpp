#pragma once
#include "runner/engine/keeper_client.hpp"
#include "runner/local/bundle.hpp"

namespace mlenv {

/// The job of a run as its keeper starts it: with our terminal's size where it has one, else with
/// the streams of `fds`, or ours where they name none.
KeptProcess kept_process(const Bundle& bundle, const LocalRun::Fds& fds);

}  // namespace mlenv
