#include "builder/debian/order.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>

namespace mlenv::debian {
namespace {

class Sorter {
 public:
  explicit Sorter(const std::vector<Package>& packages)
      : packages_(packages), visited_(packages.size()) {
    for (std::size_t i = 0; i < packages.size(); ++i) providers_[packages[i].name].push_back(i);
    for (std::size_t i = 0; i < packages.size(); ++i) {
      for (const auto& group : parse_relation(packages[i].field("provides"))) {
        for (const std::string& name : group) providers_[name].push_back(i);
      }
    }
  }

  void visit(std::size_t index, std::vector<std::size_t>& order) {
    if (visited_[index]) return;
    visited_[index] = true;
    for (const char* field : {"pre-depends", "depends"}) {
      for (const auto& group : parse_relation(packages_[index].field(field))) {
        if (const std::vector<std::size_t>* found = first_present(group)) {
          for (const std::size_t provider : *found) visit(provider, order);
        }
      }
    }
    order.push_back(index);
  }

 private:
  const std::vector<std::size_t>* first_present(const std::vector<std::string>& group) const {
    for (const std::string& name : group) {
      if (const auto found = providers_.find(name); found != providers_.end()) {
        return &found->second;
      }
    }
    return nullptr;
  }

  const std::vector<Package>& packages_;
  std::vector<bool> visited_;
  std::map<std::string, std::vector<std::size_t>> providers_;
};

}  // namespace

std::vector<std::size_t> Order::all() const {
  std::vector<std::size_t> both = essential;
  both.insert(both.end(), rest.begin(), rest.end());
  return both;
}

Order order_of(const std::vector<Package>& packages) {
  std::vector<std::size_t> by_name(packages.size());
  std::iota(by_name.begin(), by_name.end(), std::size_t{0});
  std::ranges::sort(by_name, {}, [&](std::size_t i) {
    return std::pair(packages[i].name, packages[i].architecture);
  });
  Order order;
  Sorter sorter{packages};
  for (const std::size_t i : by_name) {
    if (packages[i].essential()) sorter.visit(i, order.essential);
  }
  for (const std::size_t i : by_name) sorter.visit(i, order.rest);
  return order;
}

}  // namespace mlenv::debian
