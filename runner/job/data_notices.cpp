#include "runner/job/data_notices.hpp"

#include <fmt/core.h>

#include "runner/job/node_link.hpp"

namespace mlenv::job {

std::string DataNotice::next(const NodeLink& link, const std::string& node) {
  constexpr std::chrono::seconds kBetween{15};
  constexpr double kMega = 1e6;
  const auto now = std::chrono::steady_clock::now();
  const std::optional<NodeLink::DataSent> data = link.data_sent();
  if (!data) return {};
  if (name_ != data->name) {
    name_ = data->name;
    told_ = now;
  }
  if (now - told_ < kBetween) return {};
  told_ = now;
  return fmt::format("the data `{}` is on its way to {}: {:.1f} of {:.1f} MB", data->name, node,
                     static_cast<double>(data->sent) / kMega,
                     static_cast<double>(data->all) / kMega);
}

}  // namespace mlenv::job
