#include "runner/job/data_lists.hpp"

#include "recipes/known_data.hpp"

namespace mlenv::job {

std::shared_ptr<const DataList> DataLists::of(const std::string& blob) {
  std::weak_ptr<const DataList>& known = lists_[blob];
  std::shared_ptr<const DataList> list = known.lock();
  if (list) return list;
  list = std::make_shared<const DataList>(read_data_list(store_, Digest::parse(blob)));
  known = list;
  return list;
}

}  // namespace mlenv::job
