#!/bin/sh
# PACKAGE0037 cmake: configures and builds a project with a library and a test, by ninja
mkdir src && cat >src/CMakeLists.txt <<'END'
cmake_minimum_required(VERSION 3.20)
project(thing C)
add_library(twice twice.c)
add_executable(thing thing.c)
target_link_libraries(thing twice)
configure_file(config.h.in config.h)
target_include_directories(thing PRIVATE ${CMAKE_CURRENT_BINARY_DIR})
enable_testing()
add_test(NAME works COMMAND thing)
install(TARGETS thing)
END
echo '#define NAME "@PROJECT_NAME@"' >src/config.h.in
echo 'int twice(int n) { return 2 * n; }' >src/twice.c
printf '#include "config.h"\n#include <stdio.h>\nint twice(int);\nint main(void) { printf("%%s %%d\\n", NAME, twice(21)); return 0; }\n' >src/thing.c
cmake -G Ninja -S src -B build | tail -2 | sed 's,/tmp.*,,'
cmake --build build | tail -1
build/thing
(cd build && ctest | sed -n 's/ *[0-9.]* sec.*//;/tests passed/p')
DESTDIR=$PWD/to cmake --install build >log && find to -type f
ninja -C build -t targets | sort | grep thing:
ninja -C build | tail -1
