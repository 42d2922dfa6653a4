import threadpoolctl

print([(i["user_api"], i["num_threads"]) for i in threadpoolctl.threadpool_info()])
