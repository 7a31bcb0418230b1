// Parses a feed into libxml2’s tree repeatedly and prints the median time: libxml2_baseline FEED
#include "measure.h"

#include <libxml/parser.h>

enum { ROUNDS = 15 };

int main(int argc, char **argv) {
    if (argc != 2) {
        fprintf(stderr, "usage: libxml2_baseline FEED\n");
        return 64;
    }
    FILE *file = fopen(argv[1], "rb");
    CHECK(file && fseek(file, 0, SEEK_END) == 0, argv[1]);
    long size = ftell(file);
    rewind(file);
    char *text = malloc((size_t)size);
    CHECK(text && fread(text, 1, (size_t)size, file) == (size_t)size, argv[1]);
    fclose(file);
    double times[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double start = now_us();
        xmlDocPtr document = xmlReadMemory(text, (int)size, NULL, NULL, XML_PARSE_NONET | XML_PARSE_HUGE);
        times[round] = now_us() - start;
        CHECK(document, "xmlReadMemory");
        xmlFreeDoc(document);
    }
    row("libxml2.parse", percentile(times, ROUNDS, 50) / 1e3, "ms");
    free(text);
    return 0;
}
