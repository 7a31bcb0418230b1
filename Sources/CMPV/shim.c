#include "CMPV.h"
