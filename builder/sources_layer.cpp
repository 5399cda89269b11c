#include "builder/layers.hpp"
#include "builder/staged_layer.hpp"

namespace mlenv {

Layer make_sources_layer(const Lock& lock, const std::vector<ImageFile>& files, Store& store,
                         bool unpack) {
  StagedLayer staged{store, lock.epoch, unpack};
  for (const ImageFile& file : files) staged.writer().add_text(file.path, 0644, file.text);
  return staged.publish("package sources");
}

}  // namespace mlenv
