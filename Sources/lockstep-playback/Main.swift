import PlaybackService

@main
struct Main {
    static func main() async {
        await PlaybackProcess.run()
    }
}
