#include "builder/wheel_files.hpp"

#include "builder/layers.hpp"

namespace mlenv {

WheelFiles::WheelFiles(const Lock& lock, Inputs& inputs)
    : lock_(lock), inputs_(inputs), listings_(lock.wheels.size()) {}

WheelFile WheelFiles::get(std::size_t wheel) {
  const LockedWheel& locked = lock_.wheels[wheel];
  Listing& listing = listings_[wheel];
  const std::lock_guard lock{listing.mutex};
  WheelFile file = with_files({locked, inputs_.wheel(locked), listing.files});
  listing.files = file.files;
  return file;
}

std::vector<WheelFile> WheelFiles::get(const std::vector<std::size_t>& wheels) {
  std::vector<WheelFile> files;
  files.reserve(wheels.size());
  for (const std::size_t wheel : wheels) files.push_back(get(wheel));
  return files;
}

Digest WheelFiles::agreement_key() const {
  std::string text = "mlenv wheels agree\npython " + lock_.python_minor() + "\n";
  for (const LockedWheel& wheel : lock_.wheels) text += wheel.digest.str() + "\n";
  return Digest::of(text);
}

bool WheelFiles::agree_as_known(const Store& store) const {
  return store.find_key(agreement_key()).has_value();
}

void WheelFiles::check_agreement(Store& store) {
  const Digest key = agreement_key();
  if (store.find_key(key)) return;
  std::vector<std::size_t> all(lock_.wheels.size());
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = i;
  check_wheels_agree(get(all), lock_.python_minor());
  store.put_key(key, "mlenv.agree/1");
}

}  // namespace mlenv
