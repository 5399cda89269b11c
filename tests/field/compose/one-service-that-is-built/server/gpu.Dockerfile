FROM python:3.11-slim
ARG LEVEL=info
ENV LOG_LEVEL=$LEVEL
WORKDIR /app
RUN pip install uvicorn==0.30.1
COPY main.py .
CMD ["python", "main.py"]
