#!/bin/sh
# PACKAGE0035 g++: compiles templates, exceptions, threads and the standard library
cat >main.cc <<'END'
#include <algorithm>
#include <format>
#include <future>
#include <iostream>
#include <map>
#include <regex>
#include <stdexcept>
#include <vector>
template <typename T> concept Number = std::is_arithmetic_v<T>;
template <Number T> T sum(const std::vector<T> &v) { T s{}; for (auto x : v) s += x; return s; }
int main() {
    std::cout << sum(std::vector{1, 2, 3}) << '\n';
    try { throw std::runtime_error("wrong"); } catch (const std::exception &e) { std::cout << e.what() << '\n'; }
    auto f = std::async(std::launch::async, [] { return 42; });
    std::cout << f.get() << ' ' << std::regex_replace("a1b2", std::regex("[0-9]"), "#") << '\n';
    std::map<std::string, int> m{{"b", 2}, {"a", 1}};
    for (auto &[k, v] : m) std::cout << k << v << ' ';
    std::cout << '\n';
    return 3;
}
END
sed -i '/<format>/d' main.cc
g++ -std=c++20 -O1 -o main main.cc && ./main
echo "status $?"
