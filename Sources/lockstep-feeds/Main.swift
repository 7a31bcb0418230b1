import FeedsService
import ProcessKit

@main
struct Main {
    static func main() async {
        await ServiceProcess.run(FeedsMachine.owner, returnsMemoryEarly: true) { try FeedsShell($0) }
    }
}
