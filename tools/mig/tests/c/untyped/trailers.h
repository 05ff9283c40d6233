#pragma once
#include <mach/message.h>
